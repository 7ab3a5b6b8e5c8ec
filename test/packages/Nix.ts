import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/*
 * Checks the files for Nix as far as possible without nixpkgs, which would have to be downloaded. The files must be
 * valid Nix, the whole flake must evaluate with a replacement for nixpkgs that has only a few functions, and the module
 * must make the same unit as deploy/systemd, for any roles. Nothing is built.
 */

const repository = resolve(import.meta.dirname, "../..")

/** The keys of a unit that each method of installation writes differently. */
const apart = new Set(["Environment", "EnvironmentFile", "ExecReload", "ExecStart"])

type Settings = ReadonlyMap<string, string>

interface Made {
  readonly serviceConfig: Readonly<Record<string, unknown>>
  readonly ports: unknown
}

// Nothing is built, but Nix would warn about building if there were no group of builders.
const env = { NIX_CONFIG: "build-users-group =\nexperimental-features = nix-command flakes" }

const nix = (...words: ReadonlyArray<string>): Promise<string> =>
  runCommand("nix-instantiate", words, { cwd: repository, env })

const madeFor = async (roles: ReadonlyArray<string>, address: string, published?: string): Promise<Made> => {
  const list = `[${roles.map((role) => JSON.stringify(role)).join(" ")}]`
  const options = ["--arg", "roles", list, "--argstr", "address", address]
  if (published !== undefined) options.push("--argstr", "published", published)
  return JSON.parse(await nix("--eval", "--strict", "--json", "test/packages/module.nix", ...options))
}

/** The outputs of the flake for each system, and the modules, with the type that `nix flake show` prints for each. */
const outputs = {
  apps: ["default"],
  checks: ["module", "package"],
  devShells: ["default"],
  packages: ["default"]
}

/**
 * Evaluates every output of the flake, for both systems, with a nixpkgs that has only what the flake uses and that
 * builds nothing.
 */
const evaluatesWhole = async (directory: string): Promise<void> => {
  const place = ["--override-input", "nixpkgs", `path:${join(repository, "test/packages/nixpkgs")}`]
  const options = ["--offline", "--no-write-lock-file", "--store", join(directory, "store"), ...place, repository]
  const flake = (...words: ReadonlyArray<string>) =>
    runCommand("nix", ["flake", ...words, ...options], { cwd: repository, env })
  await flake("check", "--no-build")
  const [shown = ""] = /^\{.*\}$/m.exec(await flake("show", "--json")) ?? []
  const { nixosModules, ...rest }: Readonly<Record<string, Readonly<Record<string, object>>>> = JSON.parse(shown)
  check(Object.keys(nixosModules ?? {}).join() === "default", `the modules are ${JSON.stringify(nixosModules)}`)
  const names = Object.entries(rest).flatMap(([kind, systems]) =>
    Object.entries(systems).map(([system, named]) => `${kind} ${system} ${Object.keys(named).join(" ")}`)
  )
  const expected = Object.entries(outputs).flatMap(([kind, named]) =>
    ["aarch64-linux", "x86_64-linux"].map((system) => `${kind} ${system} ${named.join(" ")}`)
  )
  check(names.join("\n") === expected.join("\n"), `the flake has\n${names.join("\n")}`)
}

const everyRole = ["acme", "admin", "worker"] as const

/** The seven possible sets of roles. */
const subsets = [1, 2, 3, 4, 5, 6, 7].map((bits) => everyRole.filter((_, index) => (bits & 1 << index) !== 0))

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

/**
 * Checks that every package with a digest is fetched by that digest from npm's registry, and that no digest is
 * invented.
 */
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

/** Checks that the lock of the flake pins the branch that the flake names. */
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

const play = async ({ directory, step }: Site): Promise<void> => {
  await step("is Nix", async () => {
    await nix("--parse", "flake.nix", "nix/lock.nix", "nix/module.nix", "nix/package.nix", "nix/test.nix")
  })
  await step("evaluates as a whole, over a nixpkgs of a few functions", () => evaluatesWhole(directory))
  await step("fetches what package-lock.json names", fetchesWhatIsLocked)
  await step("pins the nixpkgs that the flake names", pinsWhatIsNamed)
  await step("makes the unit of systemd for all roles", async () => {
    const made = await madeFor(["worker", "admin", "acme"], "[::]:3000")
    equals(made, "acme-svc.service")
    serves(made, "serve")
    check(JSON.stringify(made.ports) === "[3000]", "the firewall stays closed")
  })
  await step("makes it for every set of roles", async () => {
    for (const roles of subsets) {
      const made = await madeFor(roles, "[::]:3000")
      equals(made, "acme-svc@.service")
      serves(made, roles.length === everyRole.length ? "serve" : `serve --role ${roles.join(",")}`)
      const open = roles.includes("acme") ? "[3000]" : "{}"
      check(JSON.stringify(made.ports) === open, `for ${roles.join(" ")} the firewall is ${JSON.stringify(made.ports)}`)
    }
  })
  await step("lets a port under 1024 be listened on", async () => {
    for (const made of [await madeFor(["acme"], "[::]:443"), await madeFor(["acme"], "[::]:3000", "[::]:80")]) {
      for (const key of ["AmbientCapabilities", "CapabilityBoundingSet"]) {
        const value = settingsOf(made).get(key)
        check(value === "CAP_NET_BIND_SERVICE", `${key} is ${value}`)
      }
    }
  })
  await step("opens the port of what is published", async () => {
    const { ports } = await madeFor(["acme"], "[::]:3000", "[::]:3003")
    check(JSON.stringify(ports) === "[3000,3003]", `the firewall is ${JSON.stringify(ports)}`)
  })
}

/** `flake.nix` and `nix`. */
export const nixos: Installation = { name: "NixOS module", commands: ["nix-instantiate"], play }
