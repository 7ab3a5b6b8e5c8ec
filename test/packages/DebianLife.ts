import { writeFileSync } from "node:fs"
import type { World } from "../support/Ground.ts"
import { startWorld } from "../support/Ground.ts"
import { freePort } from "../support/Ports.ts"
import type { Certified } from "./Certified.ts"
import { certify } from "./Certified.ts"
import type { Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { debianLines } from "./Lines.ts"
import type { Machine } from "./Machine.ts"

/*
 * Tests the Debian package with a service under systemd. The package is installed, upgraded while the service runs,
 * removed, installed again and purged. At each step, the test checks when and in which order the units stop and start.
 */

const name = "www.corp.example"
const unit = "acme-svc.service"
const isReady = "acme-svc is ready"
const hasDrained = "server_shutdown_completed"

/** Instances that exist only for the scripts of the package and only wait, in the order of a restart. */
const instances = [
  "acme-svc@worker.service",
  "acme-svc@acme.service",
  "acme-svc-acme@1.service",
  "acme-svc-acme@2.service"
]

/** Enabled units that do not run. */
const idle = "acme-svc@admin.service"

const waiting = "[Service]\nExecStart=\nExecStart=/bin/sleep infinity\n"

/** Returns the value of a property of a unit. */
const propertyOf = async ({ shell }: Machine, of: string, property: string): Promise<string> =>
  (await shell(`systemctl show --property=${property} --value ${of}`)).trim()

const isActive = async (machine: Machine, of: string): Promise<boolean> =>
  await propertyOf(machine, of, "ActiveState") === "active"

/** The service, with the data that its clients know. */
interface Service {
  readonly machine: Machine
  readonly directory: string
  readonly baseUrl: string
  readonly world: World
  readonly issue: (name: string) => Promise<Certified>
}

/** Makes the service of a machine listen at a free port and use the names of a world. Returns its URL. */
export const configure = async (machine: Machine, world: World): Promise<string> => {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const variables = {
    ...world.env,
    ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
    ACME_SVC_SERVER__BASE_URL: baseUrl,
    ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true"
  }
  const lines = Object.entries(variables).map(([key, value]) => `${key}=${value}\n`)
  writeFileSync(machine.at("/etc/acme-svc/env"), lines.join(""), { mode: 0o600 })
  return baseUrl
}

const prepare = async (machine: Machine, world: World, directory: string): Promise<Service> => {
  const baseUrl = await configure(machine, world)
  return { machine, directory, baseUrl, world, issue: (wanted) => certify(baseUrl, world, directory, wanted) }
}

/** Starts instances of the templates, which only wait. */
const addInstances = async ({ shell }: Machine): Promise<void> => {
  for (const template of ["acme-svc@", "acme-svc-acme@"]) {
    const folder = `/run/systemd/system/${template}.service.d`
    await shell(`mkdir -p ${folder} && printf '%s' '${waiting}' > ${folder}/waiting.conf`)
  }
  await shell(`systemctl daemon-reload && systemctl start ${instances.join(" ")} && systemctl --quiet enable ${idle}`)
}

const pidsOf = (machine: Machine): Promise<ReadonlyArray<string>> =>
  Promise.all([unit, ...instances].map((one) => propertyOf(machine, one, "MainPID")))

const upgrade = async ({ issue, machine }: Service, step: Site["step"]): Promise<void> => {
  const { shell } = machine
  await addInstances(machine)
  const before = await pidsOf(machine)
  await step("serves on while the files of an upgrade are laid", async () => {
    await shell("echo '# mine' >> /etc/acme-svc/config.toml && dpkg --unpack newer.deb")
    check(
      before.join() === (await pidsOf(machine)).join(),
      "a unit was stopped before the new files could be started"
    )
    await issue("meanwhile.corp.example")
  })
  await step("restarts what runs, workers first, and nothing else", async () => {
    await shell("dpkg --configure acme-svc")
    const after = await pidsOf(machine)
    const same = before.filter((pid, index) => pid === "0" || pid === after[index])
    check(same.length === 0, `${same.length} units run the files that were replaced`)
    const [, ...begun] = await Promise.all(
      [unit, ...instances].map(async (one) => Number(await propertyOf(machine, one, "ExecMainStartTimestampMonotonic")))
    )
    check(begun.join() === [...begun].sort((one, other) => one - other).join(), `they began at ${begun.join(", ")}`)
    check(!await isActive(machine, idle), `${idle} was started`)
    await machine.said(unit, isReady, 2)
    await machine.said(unit, hasDrained, 1)
  })
  await step("keeps the configuration that was changed, and migrates", async () => {
    check((await shell("dpkg-query --show acme-svc")).includes("-1"), "the older version is installed")
    check((await shell("tail -n 1 /etc/acme-svc/config.toml")) === "# mine\n", "config.toml was replaced")
    await shell("acme-svc migrate --check")
  })
}

/**
 * Returns a function that checks that the service still has its data: the order, and the account, which gets a new
 * certificate.
 */
const holderOf = ({ client, serial }: Certified, { issue, machine: { shell } }: Service) => {
  const account = client.getAccountUrl()
  return async () => {
    const said = await shell(`${debianLines.list} --json`)
    check(said.includes(name), said)
    await client.createAccount({ onlyReturnExisting: true })
    check(client.getAccountUrl() === account, `the account was ${account}, and is ${client.getAccountUrl()}`)
    check((await issue(name)).serial !== serial, "the certificate is the old one")
  }
}

const remove = async (machine: Machine): Promise<void> => {
  const { shell } = machine
  await shell("dpkg --remove acme-svc")
  const running = await shell("systemctl list-units --plain --no-legend --state=active 'acme-svc*.service'")
  check(running === "", `still running: ${running}`)
  await machine.said(unit, hasDrained, 2)
  await shell("test -s /var/lib/acme-svc/ca.key -a -s /var/lib/acme-svc/sqlite.db")
  await shell("test -s /etc/acme-svc/config.toml -a ! -e /usr/lib/acme-svc")
}

/** A package whose own script fails before its files are unpacked. */
const unwilling = `
dpkg-deb --raw-extract newer.deb unwilling
printf '#!/bin/sh\nexit 1\n' > unwilling/DEBIAN/preinst
chmod 0755 unwilling/DEBIAN/preinst
dpkg-deb -Znone --build unwilling unwilling.deb`

/** Checks that dpkg ends with an error, and that the package is installed, enabled and running afterwards. */
const fails = async ({ machine }: Service, line: string): Promise<void> => {
  const { shell } = machine
  const said = await shell(`if ${line} 2>&1; then echo 'it did not fail'; fi`)
  check(said.includes("error processing") && !said.includes("it did not fail"), said)
  const status = await shell("dpkg-query --show --showformat='${db:Status-Status}' acme-svc")
  check(status === "installed", `the package is ${status}`)
  check((await shell(`systemctl is-enabled ${unit}`)) === "enabled\n", "what was enabled is not any more")
  check(await isActive(machine, unit), "what ran does not any more")
}

const survive = async (service: Service, step: Site["step"]): Promise<void> => {
  const { machine } = service
  const { shell } = machine
  await step("runs on when its removal fails", async () => {
    const before = await propertyOf(machine, unit, "MainPID")
    const script = "/var/lib/dpkg/info/acme-svc.prerm"
    await shell(`cp --preserve ${script} prerm && sed -i '2i exit 1' ${script}`)
    await fails(service, "dpkg --remove acme-svc")
    check(before === await propertyOf(machine, unit, "MainPID"), "it was started anew")
    await shell(`mv prerm ${script}`)
  })
  await step("runs on when an upgrade fails", async () => {
    await shell(unwilling)
    await fails(service, "dpkg --install unwilling.deb")
    // The service was started again, after it had been ready three times.
    await machine.said(unit, isReady, 4)
    await service.issue("still.corp.example")
  })
}

/** Tests `/root/older.deb` and `/root/newer.deb` of a machine, one after the other. */
export const playLife = async (machine: Machine, { directory, step }: Site): Promise<void> => {
  const { shell } = machine
  const world = await startWorld()
  const begin = async (times: number) => {
    await shell(`systemctl start ${unit}`)
    await machine.said(unit, isReady, times)
  }
  try {
    await shell("dpkg --install older.deb")
    const service = await prepare(machine, world, directory)
    const had = await step("issues a certificate under systemd", async () => {
      await shell(`${debianLines.init} && ${debianLines.start}`)
      await begin(1)
      await shell(debianLines.health)
      return service.issue(name)
    })
    await step("reads its configuration again when it is told to", async () => {
      await shell(`systemctl reload ${unit}`)
      await machine.said(unit, "server_config_reloaded")
    })
    const kept = holderOf(had, service)
    await upgrade(service, step)
    await step("has the account and the certificate of before", kept)
    await step("stops, and keeps data and configuration, when it is removed", () => remove(machine))
    await step("goes on where it ended when it is installed again", async () => {
      await shell("dpkg --install newer.deb")
      check((await shell(`systemctl is-enabled ${unit}`)) === "enabled\n", "what was enabled is not any more")
      check(!await isActive(machine, unit), "it was started without being asked to")
      // The service was ready after its first start and after the start by the upgrade.
      await begin(3)
      await kept()
    })
    await survive(service, step)
    await step("leaves nothing to systemd when it is purged", async () => {
      await shell(`systemctl --quiet disable ${idle} && rm -r /run/systemd/system/acme-svc*`)
      await shell("ACME_SVC_PURGE_DATA=yes dpkg --purge acme-svc")
      const left = await shell("find /etc/systemd /run/systemd/system /var/lib/systemd -name '*acme-svc*'")
      check(left === "", left)
      const loaded = await shell("systemctl list-units --all --plain --no-legend 'acme-svc*'")
      check(loaded === "", `systemd still has ${loaded}`)
      await shell("test ! -e /etc/acme-svc -a ! -e /var/lib/acme-svc -a ! -e /usr/lib/acme-svc")
    })
  } finally {
    await world.stop()
  }
}
