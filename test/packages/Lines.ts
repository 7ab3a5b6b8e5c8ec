/* The commands of docs/install.md, which the cases run as they stand; `test/docs/listed.test.ts` holds the document to them. */

export const npmLines = {
  pack: "npm pack",
  install: "npm install ./acme-svc-*.tgz",
  init: "npx acme-svc init",
  serve: "node_modules/.bin/acme-svc serve",
  health: "npx acme-svc health"
} as const

export const debianLines = {
  build: "npm run deb",
  install: "apt-get install ./acme-svc_*_amd64.deb",
  check: "acme-svc config check",
  init: "acme-svc init",
  list: "acme-svc order list",
  purge: "apt-get purge acme-svc"
} as const

/** All of them. */
export const packageLines: ReadonlyArray<string> = [npmLines, debianLines].flatMap((lines) => Object.values(lines))
