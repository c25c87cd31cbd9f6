"""What is made beside the packages: reference outputs, measurements, tables of the documents, the wheel."""
