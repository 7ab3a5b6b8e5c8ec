import { Effect } from "effect"
import { createHash } from "node:crypto"
import {
  chmodSync,
  copyFileSync,
  cpSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { gzipSync } from "node:zlib"
import { sections, whole } from "../../src/app/Commands.ts"
import type { Setting } from "../../src/surfaces/cli/ManPage.ts"
import { renderManPage } from "../../src/surfaces/cli/ManPage.ts"
import { copyrightOf } from "./Copyright.ts"
import { endWith, needPrograms, orEnd } from "./Ending.ts"
import { copyModules, repository, run, runtimeOf, runtimePackages } from "./Modules.ts"
import { runtimeComponent, withRuntime } from "./RuntimeSbom.ts"

/*
 * `npm run deb` makes Debian packages, `build/acme-svc_<version>_<arch>.deb`, of what `npm run build` makes. The
 * packages contain the runtime. Equal sources give equal bytes, because every time in a package is the time of the last
 * commit, or SOURCE_DATE_EPOCH.
 */

/** Where the package installs its files. */
const installed: Setting = {
  description: [
    "As root it works on the service of this host: as its user, in /var/lib/acme-svc, with its configuration.",
    "As anybody else it works in the current directory."
  ],
  files: [
    ["/etc/acme-svc/config.toml", "The configuration."],
    ["/etc/acme-svc/env", "Lines of variables with secrets, which outrank the configuration."],
    ["/var/lib/acme-svc", "The database, the CA and its keys."]
  ]
}

const usage = `Usage: npm run deb -- [options]

  --arch ARCH         amd64 or arm64; both unless given, may be repeated
  --revision N        the part of the version behind the hyphen, 1 unless given
  --compression NAME  as dpkg-deb has it, xz unless given; gzip is quick and large
  --out DIR           build unless given
  --built             takes dist as it is, and does not build it first
  --help

The maintainer is DEBFULLNAME and DEBEMAIL of the environment.
`

/** The names that Debian, npm and the linker use for each architecture. */
const architectures = {
  amd64: { cpu: "x64", strip: "x86_64-linux-gnu-strip", binutils: "binutils-x86-64-linux-gnu" },
  arm64: { cpu: "arm64", strip: "aarch64-linux-gnu-strip", binutils: "binutils-aarch64-linux-gnu" }
} as const
type Architecture = keyof typeof architectures

const isArchitecture = (name: string): name is Architecture => name in architectures

const { values } = await orEnd(2, () =>
  parseArgs({
    options: {
      arch: { type: "string", multiple: true, default: Object.keys(architectures) },
      revision: { type: "string", default: "1" },
      compression: { type: "string", default: "xz" },
      out: { type: "string", default: join(repository, "build") },
      built: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  }))

if (values.help) {
  process.stdout.write(usage)
  process.exit()
}

const wanted = values.arch.map((name) => isArchitecture(name) ? name : endWith(2, `${name} is not amd64 or arm64.`))

const native = process.arch === "arm64" ? "arm64" : "amd64"
needPrograms(
  new Map([
    ...wanted.map((name) => [architectures[name].strip, architectures[name].binutils] as const),
    ["dpkg-deb", "dpkg"],
    ["tar", "tar"],
    ...process.env["SOURCE_DATE_EPOCH"] === undefined ? [["git", "git"] as const] : []
  ]),
  wanted.some((name) => name !== native) ? `For this host alone: npm run deb -- --arch ${native}` : ""
)

/** At its usual level, xz takes a minute, which is acceptable for packages that are made once. */
const quick = values.compression === "gzip" ? ["-z1"] : []

const text = (file: string): string => readFileSync(join(repository, file), "utf8")
const debian = (file: string): string => join(import.meta.dirname, "debian", file)

const { version: upstream } = JSON.parse(text("package.json")) as { readonly version: string }
const version = `${upstream}-${values.revision}`
const maintainer = `${process.env["DEBFULLNAME"] ?? "acme-svc packagers"} <${
  process.env["DEBEMAIL"] ?? "packagers@example.org"
}>`
const epoch = process.env["SOURCE_DATE_EPOCH"] ??
  await orEnd(1, () => run("git", ["log", "-1", "--format=%ct"]).trim())
const date = new Date(Number(epoch) * 1000)

/** Replaces the paths of an installation from a clone by the paths on Debian. */
const here = (said: string): string =>
  said
    .replaceAll("/opt/acme-svc/node_modules/.bin/node", "/usr/lib/acme-svc/node")
    .replaceAll("/opt/acme-svc", "/usr/lib/acme-svc")
    // Other users must not read the state directory, which they could with systemd's default mode.
    .replaceAll("StateDirectory=acme-svc\n", "StateDirectory=acme-svc\nStateDirectoryMode=0750\n")
    .replaceAll("docs/operate/service.md", "/usr/share/doc/acme-svc/service.md.gz")

const files = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ name, parentPath }) => join(parentPath, name).slice(folder.length + 1))
    .sort()

/** Compresses content, without gzip's record of the time and the system, so that equal sources give equal bytes. */
const gzipped = (content: string | Buffer): Buffer => {
  const bytes = gzipSync(content, { level: 9 })
  bytes[9] = 3
  return bytes
}

const changelog = `acme-svc (${version}) stable; urgency=medium

  * What changed is in changelog.gz.

 -- ${maintainer}  ${date.toUTCString().replace("GMT", "+0000")}
`

const control = (architecture: Architecture, kibibytes: number): string =>
  `Package: acme-svc
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kibibytes}
Depends: adduser, libc6 (>= 2.34), libgcc-s1 (>= 3.4), libstdc++6 (>= 11)
Suggests: postgresql
Section: net
Priority: optional
Description: ACME server that hands certificates to an organisation's own clients
 It speaks ACME (RFC 8555) with certbot, lego and other clients, validates names
 by http-01, dns-01 and tls-alpn-01, and signs with a CA of its own, with a
 program, or by an ACME CA elsewhere. Accounts, orders and revocations are kept
 in SQLite or PostgreSQL.
 .
 The runtime it is tested on is part of the package.
`

/** Writes all files of a package below `root`, where they have the same paths as on a host. */
const lay = async (root: string, architecture: Architecture, temporary: string): Promise<void> => {
  const { cpu, strip } = architectures[architecture]
  const put = (file: string, content: string | Buffer, mode = 0o644) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), content)
    chmodSync(join(root, file), mode)
  }
  const lib = join(root, "usr/lib/acme-svc")
  mkdirSync(lib, { recursive: true })
  for (const part of ["dist", "migrations", "panel", "package.json"]) {
    cpSync(join(repository, part), join(lib, part), {
      recursive: true,
      filter: (file) => !["compiled", "LICENSES"].some((name) => file === join(repository, "dist", name))
    })
  }
  // The launcher names the runtime by its path, because a `#!` line might find another one.
  put("usr/lib/acme-svc/dist/main.js", text("dist/main.js").replace(/^#!.*\n/, ""))
  put("usr/lib/acme-svc/dist/sbom.cdx.json", withRuntime(text("dist/sbom.cdx.json"), runtimeComponent(cpu), []))
  copyModules(lib, `linux-${cpu}`, temporary)
  const runtime = runtimeOf(cpu, temporary)
  run(strip, ["--strip-unneeded", "-o", join(lib, "node"), join(runtime, "bin/node")])
  for (const file of files(lib)) {
    if (file.endsWith(".node")) run(strip, ["--strip-unneeded", join(lib, file)])
    chmodSync(join(lib, file), file === "node" ? 0o755 : 0o644)
  }

  put("usr/bin/acme-svc", here(text("deploy/systemd/acme-svc")), 0o755)
  for (const unit of ["acme-svc.service", "acme-svc@.service", "acme-svc-acme@.service"]) {
    put(`usr/lib/systemd/system/${unit}`, here(text(`deploy/systemd/${unit}`)))
  }
  put("etc/acme-svc/config.toml", readFileSync(debian("config.toml")), 0o640)
  // With this copy the command finds out whether somebody has changed the configuration: setup replaces it only if not.
  put("usr/lib/acme-svc/config.toml", readFileSync(debian("config.toml")))
  const page = { version: upstream, day: date.toISOString().slice(0, 10), setting: installed }
  put("usr/share/man/man1/acme-svc.1.gz", gzipped(renderManPage(await Effect.runPromise(whole), sections, page)))
  const completions = (shell: string) => run(process.execPath, ["dist/main.js", "completions", shell])
  put("usr/share/bash-completion/completions/acme-svc", completions("bash"))
  put("usr/share/zsh/vendor-completions/_acme-svc", completions("zsh"))
  put("usr/share/fish/vendor_completions.d/acme-svc.fish", completions("fish"))

  const doc = "usr/share/doc/acme-svc"
  put(`${doc}/changelog.Debian.gz`, gzipped(changelog))
  put(`${doc}/changelog.gz`, gzipped(text("CHANGELOG.md")))
  put(`${doc}/service.md.gz`, gzipped(text("docs/operate/service.md")))
  put(`${doc}/examples/config.toml.example`, text("config.toml.example"))
  put(
    `${doc}/copyright`,
    copyrightOf({
      own: text("LICENSE"),
      runtime: readFileSync(join(runtime, "LICENSE"), "utf8"),
      notices: text("dist/LICENSES"),
      folders: runtimePackages.map((path) => [path, join(repository, path)])
    })
  )
  put("usr/share/lintian/overrides/acme-svc", readFileSync(debian("lintian-overrides")))

  const payload = files(root)
  const sums = payload.filter((file) => !file.startsWith("etc/")).map((file) =>
    `${createHash("md5").update(readFileSync(join(root, file))).digest("hex")}  ${file}\n`
  )
  const size = payload.reduce((sum, file) => sum + Math.ceil(statSync(join(root, file)).size / 1024), 0)
  put("DEBIAN/control", control(architecture, size))
  put("DEBIAN/conffiles", "/etc/acme-svc/config.toml\n")
  put("DEBIAN/md5sums", sums.join(""))
  for (const script of ["postinst", "prerm", "postrm"]) put(`DEBIAN/${script}`, readFileSync(debian(script)), 0o755)
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) chmodSync(path, 0o755)
    lutimesSync(path, date, date)
  }
  chmodSync(root, 0o755)
  lutimesSync(root, date, date)
}

const build = async (architecture: Architecture): Promise<string> => {
  const temporary = mkdtempSync(join(tmpdir(), "acme-deb-"))
  try {
    const root = join(temporary, "root")
    mkdirSync(root)
    await lay(root, architecture, temporary)
    const name = `acme-svc_${version}_${architecture}.deb`
    process.env["SOURCE_DATE_EPOCH"] = epoch
    run("dpkg-deb", ["--root-owner-group", `-Z${values.compression}`, ...quick, "--build", root, join(temporary, name)])
    const out = resolve(values.out)
    mkdirSync(out, { recursive: true })
    copyFileSync(join(temporary, name), join(out, name))
    return join(out, name)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

await orEnd(1, async () => {
  if (!values.built) run("npm", ["run", "--silent", "build"])
  for (const architecture of wanted) process.stdout.write(`${await build(architecture)}\n`)
})
