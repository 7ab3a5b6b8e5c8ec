/**
 * Files that take long and that a change seldom breaks: sweeps over every table, setting and page, benchmarks, programs
 * of the documents, failures of real servers, and browsers. `npm test` leaves them out, so that it takes less than four
 * minutes. The full run, which the gate makes, has them. Paths are relative to `test/`.
 */
export const gateOnly: ReadonlyArray<string> = [
  "app/KindTrials.test.ts",
  "app/OnlineCheck.test.ts",
  "app/RefusedConfig.test.ts",
  "bench/Peers.test.ts",
  "crypto/x509/AlpnCertificate.test.ts",
  "docs/bench.test.ts",
  "docs/benchOperators.test.ts",
  "docs/faults.test.ts",
  "docs/simulation.test.ts",
  "e2e/badRequests.test.ts",
  "e2e/bundle.test.ts",
  "e2e/causes.test.ts",
  "e2e/ceremony.test.ts",
  "e2e/completions.test.ts",
  "e2e/connections.test.ts",
  "e2e/customSigner.test.ts",
  "e2e/databaseGone.test.ts",
  "e2e/databaseLost.test.ts",
  "e2e/databaseRoles.test.ts",
  "e2e/degraded.test.ts",
  "e2e/demoStates.test.ts",
  "e2e/endings.test.ts",
  "e2e/faults.test.ts",
  "e2e/keyboardWay.test.ts",
  "e2e/logLost.test.ts",
  "e2e/loopGivenUp.test.ts",
  "e2e/mlDsa.test.ts",
  "e2e/newDatabase.test.ts",
  "e2e/notified.test.ts",
  "e2e/panel.test.ts",
  "e2e/panelCertificates.test.ts",
  "e2e/panelForms.test.ts",
  "e2e/panelPages.test.ts",
  "e2e/panelTree.test.ts",
  "e2e/panelWhole.test.ts",
  "e2e/panelZoom.test.ts",
  "e2e/pgbouncer.test.ts",
  "e2e/processes.test.ts",
  "e2e/publish.test.ts",
  "e2e/races.test.ts",
  "e2e/relayAccount.test.ts",
  "e2e/reload.test.ts",
  "e2e/restore.test.ts",
  "e2e/restoredBeneath.test.ts",
  "e2e/revocation.test.ts",
  "e2e/sessions.test.ts",
  "e2e/setup.test.ts",
  "e2e/sharedPort.test.ts",
  "e2e/shutdown.test.ts",
  "e2e/standbyReads.test.ts",
  "e2e/transfer.test.ts",
  "e2e/twoServers.test.ts",
  "engine/sql/Aside.test.ts",
  "engine/sql/MigrationsBeside.test.ts",
  "engine/sql/Standby.test.ts",
  "gate.test.ts",
  "operations/Unreadable.test.ts",
  "operations/operator/NameSearch.test.ts",
  "operations/operator/Transfer.test.ts",
  "operations/work/notify/Large.test.ts",
  "packaging.test.ts",
  "services/notify/Letters.test.ts",
  "settings/Values.test.ts",
  "store/EveryPlan.test.ts",
  "store/FirstMinutes.test.ts",
  "store/Rights.test.ts",
  "surfaces/api/Conformity.test.ts",
  "surfaces/api/Fuzz.test.ts",
  "surfaces/operator/Lagging.test.ts",
  "surfaces/operator/Members.test.ts",
  "surfaces/panel/Fuzz.test.ts",
  "surfaces/panel/Routes.test.ts",
  "units.test.ts"
]

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/**
 * Returns the files of {@link gateOnly} that no word of the command line names. A word names a file if it has a part of
 * its name, such as `e2e/reload`. A folder names none.
 */
export const unnamed = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  gateOnly.filter((file) =>
    !words.some((word) => nameOf(word) !== "" && `test/${file}`.includes(word) && nameOf(file).includes(nameOf(word)))
  )
