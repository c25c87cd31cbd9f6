"""A server of models over HTTP: one process, any number of models, requests of all clients in shared batches.

    oar serve pp_lcnet_x0_25_clothing --port 8000

FastAPI and uvicorn are the extra `serving`. `settings` says what a server is, `models` opens and runs models,
`batching` puts the requests of all clients together, `app` is the ASGI application, `server` the process.
"""
