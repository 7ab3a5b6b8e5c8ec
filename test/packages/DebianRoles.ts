import { appendFileSync, copyFileSync } from "node:fs"
import { startWorld } from "../support/Ground.ts"
import { certify } from "./Certified.ts"
import { configure } from "./DebianLife.ts"
import type { Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import type { Machine } from "./Machine.ts"

/*
 * Tests the units of single roles under systemd, which start before the schema exists, issue a certificate, and get a
 * wrong configuration.
 */

const worker = "acme-svc@worker.service"
const fronts = ["acme-svc-acme@1.service", "acme-svc-acme@2.service"] as const
const admin = "acme-svc@admin.service"

/** Returns the state of a unit as systemd prints it, for example `active running`. */
const stateOf = async ({ shell }: Machine, unit: string): Promise<string> => {
  const said = await shell(`systemctl show --property=ActiveState,SubState ${unit}`)
  const of = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(said)?.[1] ?? ""
  return `${of("ActiveState")} ${of("SubState")}`
}

const isRunning = async (machine: Machine, unit: string): Promise<void> => {
  const state = await stateOf(machine, unit)
  check(state === "active running", `${unit} is ${state}`)
}

const waitsForWorker = async (machine: Machine): Promise<void> => {
  const others = [...fronts, admin]
  await machine.shell(`systemctl start ${others.join(" ")}`)
  for (const unit of others) {
    await machine.said(unit, "run acme-svc migrate")
    // The second exit shows that the unit was started again.
    await machine.said(unit, "code=exited, status=1", 2)
  }
  await machine.shell(`systemctl start ${worker}`)
  for (const unit of fronts) await machine.said(unit, "server_listening")
  await machine.said(admin, "worker_registered")
}

const holdsToConfiguration = async (machine: Machine): Promise<void> => {
  const { shell } = machine
  const [unit] = fronts
  appendFileSync(machine.at("/etc/acme-svc/config.toml"), "[server.tls]\nenabled = 7\n")
  await shell(`systemctl restart ${unit}`)
  await machine.said(unit, "code=exited, status=3")
  const state = await stateOf(machine, unit)
  check(state === "failed failed", `${unit} is ${state}`)
}

/**
 * Checks what docs/contribute/decisions/process.md, "Start" says: systemd evaluates only the exit code of the service
 * itself, and a check before the start would also end with 3. The check reads only the part of the configuration about
 * the database.
 */
const checkedBefore = async (machine: Machine): Promise<void> => {
  const { shell } = machine
  const [, unit] = fronts
  const folder = `/run/systemd/system/${unit}.d`
  const before =
    "[Service]\nEnvironment=ACME_SVC_DATABASE__URL=nothing\nExecStartPre=/usr/lib/acme-svc/node /usr/lib/acme-svc/dist/main.js migrate --check\n"
  await shell(`mkdir ${folder} && printf '%s' '${before}' > ${folder}/check.conf && systemctl daemon-reload`)
  await shell(`systemctl stop ${unit} && if systemctl start ${unit}; then exit 1; fi`)
  const state = await stateOf(machine, unit)
  // The unit waits for its next start or is starting.
  check(state.startsWith("activating "), `${unit} is ${state}`)
  await shell(`systemctl stop ${unit} && rm -r ${folder} && systemctl daemon-reload`)
}

/** Tests `/root/newer.deb` on a machine that has the service only during this test. */
export const playRoles = async (machine: Machine, { directory, step }: Site): Promise<void> => {
  const { shell } = machine
  const world = await startWorld()
  try {
    await shell("dpkg --install newer.deb")
    copyFileSync(machine.at("/etc/acme-svc/config.toml"), machine.at("/root/config.toml"))
    const baseUrl = await configure(machine, world)
    await step("has units for each role that wait for the worker's schema", () => waitsForWorker(machine))
    await step("issues a certificate with the roles apart", async () => {
      await certify(baseUrl, world, directory, "apart.corp.example")
      for (const unit of [worker, ...fronts, admin]) await isRunning(machine, unit)
    })
    await step("stays down when the configuration is wrong", () => holdsToConfiguration(machine))
    await step("would not with a check before the start", () => checkedBefore(machine))
    await shell("ACME_SVC_PURGE_DATA=yes dpkg --purge acme-svc && systemctl reset-failed")
  } finally {
    await world.stop()
  }
}
