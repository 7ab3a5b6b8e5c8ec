import { copyFileSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { buildPackage, debian, native } from "../packages/Debian.ts"
import { bootMachine } from "../packages/Machine.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { commandBelow, commandsBelow } from "./Page.ts"
import type { Way } from "./Way.ts"
import { expects } from "./Way.ts"

const page = "docs/start/package.md"

/** From the package of Debian to a service that systemd runs, on a Debian that never had the package. */
export const underSystemd: Way = {
  name: "to a package under systemd",
  before: "5 steps once built",
  page,
  commands: debian.commands.filter((command) => command !== "lintian"),
  go: async (steps, { scratch }) => {
    const made = join(scratch, "made")
    const file = await buildPackage(made, { architecture: native, revision: 1 })
    const place = join(scratch, "machine")
    mkdirSync(place)
    const machine = await bootMachine(place)
    try {
      copyFileSync(file, machine.at(`/root/acme-svc_1_${native}.deb`))
      const [, install = "", , start = "", health = ""] = commandsBelow(page, "Debian")
      const setup = commandBelow(page, "What `setup` asks", "acme-svc setup")
      const next = await machine.shell(steps.typed(install).replace("amd64", native))
      for (const told of ["acme-svc setup", start, health]) {
        expects(next.includes(told), `the package does not print ${told}`)
      }
      steps.done("the answers are written into a file")
      await machine.shell("umask 077 && echo 'panel = false' > answers.toml")
      const said = await machine.shell(`${steps.typed(setup)} 2>&1`)
      expects(said.includes(start), `setup does not print ${start}`)
      const faults = await machine.shell("systemd-analyze verify --man=no acme-svc.service")
      expects(!faults.includes("acme-svc"), faults)
      await machine.shell(steps.typed(start))
      await machine.said("acme-svc.service", "acme-svc is ready")
      await machine.shell(steps.typed(health))
      steps.said(await machine.shell("systemctl is-active acme-svc"))
      const responder = await startHttp01Responder({ port: 5002 })
      const session = await AcmeSession.open("http://localhost:3000/profile/default/directory")
      await session.register()
      expects((await session.issue(["demo.localhost"], responder.tokens)).chain !== "", "no certificate is issued")
      session.close()
      await responder.stop()
    } finally {
      await machine.stop()
    }
  }
}
