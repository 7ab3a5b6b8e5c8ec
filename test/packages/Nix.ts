import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/*
 * What can be asked of the files for Nix without nixpkgs, which only the network has: whether they are Nix, and whether
 * the unit that the module makes is that of deploy/systemd, for any roles. Nothing is built.
 */

const repository = resolve(import.meta.dirname, "../..")

/** Of a unit, what each way to install writes in its own words. */
const apart = new Set(["Environment", "EnvironmentFile", "ExecReload", "ExecStart"])

type Settings = ReadonlyMap<string, string>

interface Made {
  readonly serviceConfig: Readonly<Record<string, unknown>>
  readonly ports: unknown
}

const nix = (...words: ReadonlyArray<string>): Promise<string> =>
  // Building is not asked for; without a group of builders it would warn of it.
  runCommand("nix-instantiate", words, { cwd: repository, env: { NIX_CONFIG: "build-users-group =" } })

const madeFor = async (roles: ReadonlyArray<string>, address: string): Promise<Made> => {
  const list = `[${roles.map((role) => JSON.stringify(role)).join(" ")}]`
  const options = ["--arg", "roles", list, "--argstr", "address", address]
  return JSON.parse(await nix("--eval", "--strict", "--json", "test/packages/module.nix", ...options))
}

const wordOf = (value: unknown): string => typeof value === "boolean" ? value ? "yes" : "no" : `${value}`

const settingsOf = ({ serviceConfig }: Made): Settings =>
  new Map(Object.entries(serviceConfig).map(([key, value]) => [key, wordOf(value)]))

const settingsOfUnit = (file: string): Settings => {
  const [, service = ""] =
    /^\[Service\]\n(.*?)^\[/ms.exec(readFileSync(join(repository, "deploy/systemd", file), "utf8")) ?? []
  return new Map([...service.matchAll(/^(\w+)=(.*)$/gm)].map(([, key = "", value = ""]) => [key, value]))
}

const linesOf = (settings: Settings): string =>
  [...settings].filter(([key]) => !apart.has(key)).map((pair) => pair.join("=")).sort().join("\n")

const equals = (made: Made, unit: string): void => {
  const [ours, theirs] = [linesOf(settingsOf(made)), linesOf(settingsOfUnit(unit))]
  check(theirs !== "" && ours === theirs, `the module makes\n${ours}\nand ${unit} has\n${theirs}`)
}

const serves = (made: Made, words: string): void => {
  const start = settingsOf(made).get("ExecStart")
  check(start === `/acme-svc/bin/acme-svc ${words}`, `it starts ${start}`)
}

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
}

interface Lock {
  readonly packages: Readonly<Record<string, Locked>>
}

const jsonOf = <A>(file: string): A => JSON.parse(readFileSync(join(repository, file), "utf8")) as A

/** That every package with a digest is fetched by it, from npm's registry, and that none is made up. */
const fetchesWhatIsLocked = async (): Promise<void> => {
  const text = await nix("--eval", "--strict", "--json", "test/packages/package.nix")
  const { npmDeps: { packageLock: { packages: asked } } }: { readonly npmDeps: { readonly packageLock: Lock } } = JSON
    .parse(text)
  const { packages: locked } = jsonOf<Lock>("package-lock.json")
  const left = Object.keys(locked).filter((place) => !(place in asked))
  check(
    left.every((place) => /^(?:runtime|node_modules\/(?:acme-svc-runtime|node-(?:linux|win)-\w+))$/.test(place)),
    left.join(" ")
  )
  for (const [place, { integrity, resolved, version }] of Object.entries(asked)) {
    check(integrity === locked[place]?.integrity, `${place} is held to ${integrity}`)
    const name = place.split("node_modules/").at(-1) ?? ""
    const url = `https://registry.npmjs.org/${name}/-/${name.replace(/^@[^/]+\//, "")}-${version}.tgz`
    check(resolved === (integrity === undefined ? undefined : url), `${place} is fetched from ${resolved}`)
  }
}

/** That the lock of the flake is of the branch the flake names, and pins it. */
const pinsWhatIsNamed = async (): Promise<void> => {
  interface Node {
    readonly locked: { readonly rev: string; readonly narHash: string }
    readonly original: { readonly owner: string; readonly repo: string; readonly ref: string }
  }
  const { nodes: { nixpkgs: { locked, original: { owner, ref, repo } } } } = jsonOf<
    { readonly nodes: { readonly nixpkgs: Node } }
  >("flake.lock")
  const [, named] = /inputs\.nixpkgs\.url = "github:(.+)"/.exec(readFileSync(join(repository, "flake.nix"), "utf8")) ??
    []
  check(named === `${owner}/${repo}/${ref}`, `the lock is of ${owner}/${repo}/${ref}`)
  check(/^[\da-f]{40}$/.test(locked.rev) && /^sha256-[\w+/]{43}=$/.test(locked.narHash), JSON.stringify(locked))
}

const play = async ({ step }: Site): Promise<void> => {
  await step("is Nix", async () => {
    await nix("--parse", "flake.nix", "nix/lock.nix", "nix/module.nix", "nix/package.nix", "nix/test.nix")
  })
  await step("fetches what package-lock.json names", fetchesWhatIsLocked)
  await step("pins the nixpkgs that the flake names", pinsWhatIsNamed)
  await step("makes the unit of systemd for all roles", async () => {
    const made = await madeFor(["worker", "admin", "acme"], "[::]:3000")
    equals(made, "acme-svc.service")
    serves(made, "serve")
    check(JSON.stringify(made.ports) === "[3000]", "the firewall stays closed")
  })
  await step("makes it for some", async () => {
    const made = await madeFor(["worker"], "[::]:80")
    equals(made, "acme-svc@.service")
    serves(made, "serve --role worker")
    check(JSON.stringify(made.ports) === "{}", "the firewall is opened for a worker")
    serves(await madeFor(["admin", "worker"], "[::]:3000"), "serve --role admin,worker")
    serves(await madeFor(["acme", "admin"], "[::]:3000"), "serve --role acme,admin")
  })
  await step("lets a port under 1024 be listened on", async () => {
    const made = settingsOf(await madeFor(["acme"], "[::]:443"))
    for (const key of ["AmbientCapabilities", "CapabilityBoundingSet"]) {
      check(made.get(key) === "CAP_NET_BIND_SERVICE", `${key} is ${made.get(key)}`)
    }
  })
}

/** `flake.nix` and `nix`. */
export const nixos: Installation = { name: "NixOS module", commands: ["nix-instantiate"], play }
