/** What `oar export --format web` writes into manifest.json. */
export {};
