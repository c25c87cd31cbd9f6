/** What the page and its worker say to one another. */
export {};
