/*
 * The commands of the documents that are run unchanged, by the file of `test/docs` that runs them. A file must run its
 * own commands, and may also run those of other files (`test/support/Place.ts`).
 */

const http = "http://localhost:3000/profile/default/directory"
const https = "https://localhost:3000/profile/default/directory"
const certbotUser = "certbot certonly --non-interactive --agree-tos --register-unsafely-without-email"
const certbotPort = "--standalone --http-01-port 5002"
const certbotWords = `${certbotUser} ${certbotPort}`
const certbotBound = `${certbotUser} --eab-kid KID --eab-hmac-key HMAC_KEY ${certbotPort}`
const certbotRevokes =
  "certbot revoke --non-interactive --no-delete-after-revoke --cert-path demo-certbot/live/demo.localhost/cert.pem"
const legoWords = "lego --accept-tos --email you@example.org --path"
const legoNames = "--http --http.port :5002 --domains demo.localhost run"

/** The lines by the name of the file that must run them. */
export const linesOf = {
  newcomer: {
    start: "npm start",
    certbot:
      `${certbotWords} --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http} -d demo.localhost`,
    lego: `${legoWords} demo-lego --server ${http} ${legoNames}`,
    verifyCertbot: "openssl verify -CAfile ca.pem demo-certbot/live/demo.localhost/cert.pem",
    verifyLego: "openssl verify -CAfile ca.pem demo-lego/certificates/demo.localhost.crt",
    startTls: "ACME_SVC_SERVER__TLS__ENABLED=true ACME_SVC_SERVER__BASE_URL=https://localhost:3000 npm start",
    certbotTls:
      `REQUESTS_CA_BUNDLE=server.pem ${certbotWords} --config-dir demo-certbot-tls --work-dir demo-certbot-tls/work --logs-dir demo-certbot-tls/logs --server ${https} -d demo.localhost`,
    legoTls: `LEGO_CA_CERTIFICATES=server.pem ${legoWords} demo-lego-tls --server ${https} ${legoNames}`,
    startPostgres: "ACME_SVC_DATABASE__URL=postgres://acme:secret@localhost/acme npm start"
  },
  secondMachine: {
    guideClient: "acme-svc guide client lego"
  },
  operations: {
    init: "acme-svc init",
    profiles: "acme-svc profile list",
    serve: "acme-svc serve",
    serveDebug: "acme-svc serve --log-level debug",
    health: "acme-svc health",
    healthWorker: "acme-svc health --role worker",
    migrateCheck: "acme-svc migrate --check",
    migrate: "acme-svc migrate",
    backup:
      "(umask 077; node_modules/.bin/node -e 'require(\"better-sqlite3\")(process.argv[1], { fileMustExist: true }).prepare(\"VACUUM INTO ?\").run(process.argv[2])' /var/lib/acme-svc/sqlite.db /var/lib/acme-svc/backup.db)",
    migrateTarget: "ACME_SVC_DATABASE__URL=postgres://acme@db.example/acme acme-svc migrate",
    transfer: "acme-svc transfer --to postgres://acme@db.example/acme --yes",
    completions: "acme-svc completions bash"
  },
  setup: {
    setupAnswers: "acme-svc setup --answers answers.toml --yes",
    initDatabase: "acme-svc init --database postgres://postgres@db.example/postgres",
    printDatabase: "acme-svc init --database postgres://postgres@db.example/postgres --print",
    initDatabaseOfClone: "node_modules/.bin/node dist/main.js init --database postgres://postgres@localhost/postgres"
  },
  settings: {
    filterShow: "acme-svc filter show --profile default",
    filterCrl: "acme-svc filter explain --client-ip 203.0.113.9 --method GET --path /crl",
    filterOutside: "acme-svc filter explain --client-ip 203.0.113.9 --method GET --path /directory",
    filterInside: "acme-svc filter explain --client-ip 10.1.2.3 --identifier web1.example.org --json",
    notifyTest: "acme-svc notify test",
    notifyTestChat: "acme-svc notify test chat --event certificate_issued",
    notifyTestReminder: "acme-svc notify test --event expiry_reminder",
    profilesJson: "acme-svc profile list --json"
  },
  eab: {
    eabCreate: "acme-svc eab create --label \"web servers\"",
    eabCreateScoped: "acme-svc eab create --label printers --profile default",
    eabList: "acme-svc eab list",
    eabShow: "acme-svc eab show KID",
    certbotEab:
      `${certbotBound} --config-dir demo-certbot-eab --work-dir demo-certbot-eab/work --logs-dir demo-certbot-eab/logs --server ${http} -d demo.localhost`,
    legoEab: `${legoWords} demo-lego-eab --eab --kid KID --hmac HMAC_KEY --server ${http} ${legoNames}`,
    eabSet: "acme-svc eab set KID --names '**.shop.example' --kinds default --orders-per-day 100 --max-accounts 1",
    eabRevoke: "acme-svc eab revoke KID",
    eabDelete: "acme-svc eab delete KID --yes",
    eabDeactivateAccounts: "acme-svc eab delete KID --deactivate-accounts --yes",
    eabDeleteAccounts: "acme-svc eab delete KID --delete-accounts --yes"
  },
  campaigns: {
    campaignPreview: "acme-svc campaign preview --profile default --key rsa-2048",
    campaignStart:
      "acme-svc campaign start --profile default --key rsa-2048 --reason \"RSA keys of 2048 bits\" --explanation-url https://status.example.org/rsa",
    campaignList: "acme-svc campaign list",
    campaignShow: "acme-svc campaign show CAMPAIGN_ID",
    campaignSilent: "acme-svc campaign silent CAMPAIGN_ID",
    campaignPause: "acme-svc campaign pause CAMPAIGN_ID",
    campaignResume: "acme-svc campaign resume CAMPAIGN_ID",
    campaignEnd: "acme-svc campaign end CAMPAIGN_ID --yes",
    campaignDated:
      "acme-svc campaign start --issued-before 2026-01-31 --reason \"a bug of the issuance\" --revoke-at 2099-01-01 --revoke-reason superseded",
    campaignConfirm: "acme-svc campaign confirm CAMPAIGN_ID --yes"
  },
  kinds: {
    kindsList: "acme-svc kinds list --profile corp",
    kindsTry: "acme-svc kinds try request.pem --profile corp --kind mutual --name www.example.org",
    ordersOfKind: "acme-svc order list --kind mutual"
  },
  orders: {
    ordersFailed: "acme-svc order list --status invalid",
    orderShow: "acme-svc order show ORDER_ID",
    jobsOfOrder: "acme-svc jobs list --order-id ORDER_ID",
    jobsQueue: "acme-svc jobs queue",
    jobsFailed: "acme-svc jobs list --status failed",
    jobsDeliveries: "acme-svc jobs list --kind notify_deliver",
    workerList: "acme-svc worker list",
    jobsShow: "acme-svc jobs show JOB_ID",
    jobsRunNow: "acme-svc jobs run-now JOB_ID",
    jobsCancel: "acme-svc jobs cancel JOB_ID --yes"
  },
  debugging: {
    explainEvent: "acme-svc explain job_run_abandoned",
    explainSearch: "acme-svc explain --search standby",
    serveKept: "acme-svc serve --log-level debug | tee serve.log",
    grepRequest: "grep REQUEST_ID serve.log",
    grepJob: "grep JOB_ID serve.log",
    openInspector: "kill -USR1 PID",
    collectTraces: "node docs/recipes/traces.mjs 4318 | tee traces.log",
    serveTraced: "ACME_SVC_TRACING__ENDPOINT=http://127.0.0.1:4318/v1/traces acme-svc serve",
    cpuProfile: "node docs/recipes/cpu-profile.mjs 9229 10 server.cpuprofile",
    sqliteLocks: "grep \":$(stat --format %i sqlite.db-shm) \" /proc/locks"
  },
  renewal: {
    ordersBelow: "acme-svc order list --identifier-suffix localhost",
    ordersEnding: "acme-svc order list --expiring-in 30 --hide-superseded",
    certbotRenew:
      "certbot renew --force-renewal --no-random-sleep-on-renew --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs",
    legoRenew:
      `${legoWords} demo-lego --server ${http} --http --http.port :5002 --domains demo.localhost renew --days 90 --no-random-sleep`
  },
  revocation: {
    certbotRevoke:
      `${certbotRevokes} --reason superseded --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http}`,
    certbotRevokeByKey:
      `${certbotRevokes} --key-path demo-certbot/live/demo.localhost/privkey.pem --reason keycompromise --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http}`,
    legoRevoke: `${legoWords} demo-lego --server ${http} --domains demo.localhost revoke --keep --reason 4`,
    ordersNamed: "acme-svc order list --identifier demo.localhost",
    orderRevoke: "acme-svc order revoke ORDER_ID --reason superseded --wait 10",
    leafSerial: "openssl x509 -in demo-certbot/live/demo.localhost/cert.pem -noout -serial",
    certRevoke: "acme-svc cert revoke SERIAL --reason superseded --wait 10",
    crlList: "acme-svc crl list",
    crlText: "openssl crl -in ca.crl -noout -text",
    verifyCrl: "openssl verify -crl_check -CAfile ca.pem -CRLfile ca.crl demo-certbot/live/demo.localhost/cert.pem",
    crlRaise: "acme-svc crl raise ISSUER --above 41 --yes",
    caRotate: "acme-svc ca rotate --to ca2.pem --at TIME",
    crlCompromised: "acme-svc ca compromise ISSUER --yes"
  },
  backup: {
    vacuum: "(umask 077; sqlite3 \"file:sqlite.db?mode=rw\" \"VACUUM INTO 'backup.db'\")",
    checkCopy: "ACME_SVC_DATABASE__URL=sqlite://backup.db acme-svc migrate --check",
    keepList: "cp ca.crl ca.crl.before",
    endSessions: "acme-svc admin session revoke --all --yes",
    tokens: "acme-svc admin token list",
    users: "acme-svc admin user list",
    listBefore: "openssl crl -in ca.crl.before -noout -text",
    restored: "acme-svc audit list --event revocation_restored",
    lost: "acme-svc audit list --event changes_lost",
    crlImport: "acme-svc crl import ISSUER ca.crl.before --yes",
    ofSerial: "acme-svc order list --cert-serial SERIAL",
    crlRevoke: "acme-svc crl revoke ISSUER SERIAL --reason 4 --yes"
  },
  ca: {
    caInit: "acme-svc ca init --root root --permit corp.example --passphrase-file root-passphrase",
    caTestSign: "acme-svc ca test-sign",
    caOfNextRoot:
      "ACME_SVC_SIGNER__LOCAL_CA__CERT_PATH=ca2.pem ACME_SVC_SIGNER__LOCAL_CA__KEY_PATH=ca2.key acme-svc ca init --root root2 --passphrase-file root-passphrase",
    caRoot: "acme-svc ca init --root root --root-only --root-name \"Example Root\" --passphrase-file root-passphrase",
    caCsr: "acme-svc ca csr --out issuing.csr",
    caSign:
      "acme-svc ca sign issuing.csr --root root --permit corp.example --passphrase-file root-passphrase --yes > issuing.pem",
    caImport: "acme-svc ca import issuing.pem",
    verifyStrictly: "openssl verify -x509_strict -purpose sslserver -CAfile root.pem -untrusted leaf.pem leaf.pem"
  },
  signers: {
    encryptKey: "openssl pkcs8 -topk8 -v2 aes-256-cbc -in ca.key -out ca.encrypted.key -passout file:ca-passphrase",
    baoEnable: "bao secrets enable transit",
    baoKey: "bao write transit/keys/acme-ca type=ecdsa-p256",
    baoPolicy: "bao policy write acme-svc acme-svc.hcl",
    baoToken: "bao token create -policy acme-svc -period 24h -field token > bao-token",
    upstreamRegister: "acme-svc upstream register --profile web --eab-kid KID --eab-hmac-key-file HMAC_FILE",
    upstreamShow: "acme-svc upstream show --profile web",
    upstreamOrdersFailed: "acme-svc upstream order list --status invalid",
    upstreamOrder: "acme-svc upstream order show ORDER_ID",
    curlToken: "curl -i http://www.example.org/.well-known/acme-challenge/unknown"
  },
  runbooks: {
    attention: "acme-svc attention",
    diskFree: "df -h .",
    onlineCheck: "acme-svc config check --online",
    ordersOfAccount: "acme-svc order list --account-id ACCOUNT_ID",
    accountShow: "acme-svc account show ACCOUNT_ID",
    accountDeactivate: "acme-svc account deactivate ACCOUNT_ID --yes",
    ordersEndingInAYear: "acme-svc order list --expiring-in 365 --hide-superseded",
    revokeCompromised: "acme-svc cert revoke SERIAL --reason keyCompromise --wait 10",
    crlRevokeCompromised: "acme-svc crl revoke ISSUER SERIAL --reason keyCompromise --yes",
    auditOfOperators: "acme-svc audit list --actor-kind admin",
    totpReset: "acme-svc admin user totp reset ann",
    totpStatus: "acme-svc admin user totp status ann",
    endSessionsOf: "acme-svc admin session revoke --user ann",
    orphansWaiting: "acme-svc order orphaned --status waiting",
    orphansKept: "acme-svc order orphaned --status kept",
    orphanJobs: "acme-svc jobs list --kind orphan_revoke",
    caEnd: "openssl x509 -in ca.pem -noout -subject -enddate",
    auditVerify: "acme-svc audit verify",
    auditOfRoles: "acme-svc audit list --event operator_role_changed",
    auditReceivers: "acme-svc audit receivers",
    auditPushJobs: "acme-svc jobs list --kind audit_push",
    auditCheckJobs: "acme-svc jobs list --kind audit_chain_check"
  },
  databases: {
    makeDatabase: "psql --dbname=postgres --file=docs/recipes/postgres-database.sql",
    passwordOfOwner: "psql --dbname=postgres --command=\"\\password acme\"",
    passwordOfFront: "psql --dbname=postgres --command=\"\\password acme_front\"",
    passwordOfAdmin: "psql --dbname=postgres --command=\"\\password acme_admin\"",
    passwordOfWorker: "psql --dbname=postgres --command=\"\\password acme_worker\"",
    grantRoles: "psql --host=db.example --username=acme --dbname=acme --file=docs/recipes/postgres-roles.sql",
    makeReplicator: "psql --dbname=postgres --command=\"CREATE ROLE replicator LOGIN REPLICATION\"",
    passwordOfReplicator: "psql --dbname=postgres --command=\"\\password replicator\"",
    baseBackup:
      "pg_basebackup --dbname=\"host=db1.example user=replicator application_name=db2\" --pgdata=/var/lib/postgresql/15/main --write-recovery-conf --create-slot --slot=db2 --checkpoint=fast",
    standbys:
      "psql --dbname=postgres --command=\"SELECT application_name, state, sync_state FROM pg_stat_replication\"",
    waitForStandby:
      "psql --dbname=postgres --command=\"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (db2)'\" --command=\"SELECT pg_reload_conf()\"",
    promote: "psql --dbname=postgres --command=\"SELECT pg_promote()\""
  },
  development: {
    prune: "npm prune --omit=dev",
    relink: "npm rebuild --ignore-scripts",
    dev: "npm run dev",
    demo: "npm run demo",
    pictures: "npm run pictures -- --only panel",
    catalogues: "npm run catalogues",
    site: "npm run site",
    walk: "npm run walk",
    firstChange: "npm test -- app/Cli surfaces/operator surfaces/api catalogues",
    format: "npm run format"
  }
} as const

/** A test file that runs lines of its own. */
export type Home = keyof typeof linesOf

/** Every line that is run exactly as it is in the document. */
export const lines = {
  ...linesOf.newcomer,
  ...linesOf.secondMachine,
  ...linesOf.operations,
  ...linesOf.setup,
  ...linesOf.settings,
  ...linesOf.eab,
  ...linesOf.campaigns,
  ...linesOf.kinds,
  ...linesOf.orders,
  ...linesOf.debugging,
  ...linesOf.renewal,
  ...linesOf.revocation,
  ...linesOf.backup,
  ...linesOf.ca,
  ...linesOf.signers,
  ...linesOf.runbooks,
  ...linesOf.databases,
  ...linesOf.development
} as const

/** The name of a line. */
export type Line = keyof typeof lines
