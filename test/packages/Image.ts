import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"

/* The image of `deploy/container`, built by buildah without a registry, on a base that is made of Debian's packages. */

const repository = resolve(import.meta.dirname, "../..")
const containerfile = join(repository, "deploy/container/Containerfile")

/** The programs that build and run the image. */
export const imageCommands = ["buildah", "mmdebstrap"] as const

/** The image's settings for how it is run. */
export interface ImageConfig {
  readonly User: string
  readonly Env: ReadonlyArray<string>
  readonly Entrypoint: ReadonlyArray<string>
  readonly Cmd: ReadonlyArray<string>
  readonly WorkingDir: string
  readonly StopSignal: string
  readonly Volumes: Readonly<Record<string, unknown>>
  readonly ExposedPorts: Readonly<Record<string, unknown>>
  readonly Labels: Readonly<Record<string, string>>
  readonly Healthcheck: { readonly Test: ReadonlyArray<string> }
}

/** A separate store of images, below a folder. */
export interface Store {
  readonly buildah: (...words: ReadonlyArray<string>) => Promise<string>
}

const everything = (): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))

/** Runs the machine's npm with the machine's Node.js, whose place determines where npm finds its own settings. */
const npm = async (...words: ReadonlyArray<string>): Promise<string> => {
  const others = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"))
  const env = { ...everything(), PATH: others.join(delimiter), npm_config_loglevel: "error" }
  return (await runCommand("npm", words, { cwd: repository, env })).trim()
}

/** Opens a store of images, in which file systems are plain folders. Plain folders need no right to mount. */
export const openStore = (directory: string): Store => {
  const store = ["--storage-driver", "vfs", "--root", join(directory, "store"), "--runroot", join(directory, "run")]
  // Otherwise the output would also contain warnings.
  const words = ["--log-level", "error", ...store]
  return { buildah: (...more) => runCommand("buildah", [...words, ...more], { env: everything(), timeoutMs: 600_000 }) }
}

/** Returns the name of the image on which the Containerfile is based. */
const baseName = (): string => {
  const [, name] = /^ARG BUILD_IMAGE=(\S+)$/m.exec(readFileSync(containerfile, "utf8")) ?? []
  if (name === undefined) throw new Error("the Containerfile names no image to build on")
  return name
}

/**
 * Makes the base image under its real name, as a Debian with Node.js and npm at the places that they have in the
 * published image.
 */
export const makeBase = async ({ buildah }: Store, directory: string): Promise<void> => {
  const name = baseName()
  const [, suite] = /:\d+-(\w+)-slim$/.exec(name) ?? []
  if (suite === undefined) throw new Error(`${name} does not tell its Debian`)
  const [archive, root] = [join(directory, "debian.tar"), join(directory, "base")]
  await runCommand("mmdebstrap", ["--quiet", "--variant=essential", "--include=libstdc++6", suite, archive])
  const local = join(root, "usr/local")
  mkdirSync(join(local, "bin"), { recursive: true })
  await runCommand("tar", ["--extract", `--file=${archive}`, `--directory=${root}`])
  cpSync(process.execPath, join(local, "bin/node"))
  const program = (await runCommand("sh", ["-c", "readlink -f \"$(command -v npm)\""])).trim()
  cpSync(resolve(program, "../.."), join(local, "lib/node_modules/npm"), { recursive: true })
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm"))
  const container = (await buildah("from", "scratch")).trim()
  await buildah("add", container, root, "/")
  await buildah("commit", "--rm", container, name)
  for (const made of [archive, root]) rmSync(made, { recursive: true })
}

/** Returns the options that give the build npm's settings, with an invented password. */
const settingsOf = async (directory: string, secret: string): Promise<ReadonlyArray<string>> => {
  const [registry, cache] = [await npm("config", "get", "registry"), await npm("config", "get", "cache")]
  const certificates = [await npm("config", "get", "cafile"), process.env["NODE_EXTRA_CA_CERTS"] ?? ""].find(existsSync)
  mkdirSync(cache, { recursive: true })
  const file = join(directory, "npmrc")
  writeFileSync(
    file,
    [`registry=${registry}`, "cache=/npm-cache", "prefer-offline=true", `//npm.invalid/:_authToken=${secret}`, ""].join(
      "\n"
    )
  )
  return [
    `--secret=id=npmrc,src=${file}`,
    `--volume=${cache}:/npm-cache`,
    ...certificates === undefined ? [] : [`--secret=id=ca,src=${certificates}`]
  ]
}

/** Builds the image with the Containerfile and returns its name. */
export const buildImage = async (
  { buildah }: Store,
  directory: string,
  { secret, version }: { readonly secret: string; readonly version: string }
): Promise<string> => {
  const name = "localhost/acme-svc:tested"
  await buildah(
    "build",
    "--isolation=chroot",
    "--network=host",
    "--format=docker",
    "--pull-never",
    `--build-arg=VERSION=${version}`,
    ...await settingsOf(directory, secret),
    `--file=${containerfile}`,
    `--tag=${name}`,
    repository
  )
  return name
}

/** Returns the image's metadata, and everything that was recorded about its build. */
export const inspectImage = async (
  { buildah }: Store,
  name: string
): Promise<{ readonly config: ImageConfig; readonly text: string }> => {
  const text = await buildah("inspect", "--type", "image", name)
  const { Docker: { config } }: { readonly Docker: { readonly config: ImageConfig } } = JSON.parse(text)
  return { config, text }
}

/** Unpacks the image, and returns the folder with the file system. */
export const unpackImage = async ({ buildah }: Store, name: string): Promise<string> => {
  const container = (await buildah("from", "--pull-never", name)).trim()
  return (await buildah("mount", container)).trim()
}
