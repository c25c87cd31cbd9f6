// Puts the page's own files beside what the compiler wrote.
import { cpSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
cpSync(path.join(here, "public"), path.join(here, "../../framework/workflow/export/web/site"), {
  recursive: true,
});
