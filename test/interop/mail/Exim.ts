import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { patienceMs } from "../../support/Patience.ts"
import { freePort } from "../../support/Ports.ts"
import type { Foreground } from "../Command.ts"
import { runCommand, startForeground } from "../Command.ts"

/*
 * Exim on loopback, with two mailboxes, as a user without privileges. Exim accepts mail only over TLS, and only from
 * clients that sign in. The program comes from Debian's package, which is unpacked and not installed.
 */

/**
 * The packages of Exim and of a library. Exim looks up the user for which it was built, and the library answers instead
 * of the host's list of users.
 */
export const eximPackages: ReadonlyArray<string> = ["exim4-daemon-light", "libnss-wrapper"]

/** A message as it is in a mailbox. */
export interface Message {
  /** Headers by lower-case name, with every value that the message has. */
  readonly headers: { readonly [name: string]: ReadonlyArray<string> }
  readonly from: ReadonlyArray<readonly [name: string, address: string]>
  readonly to: ReadonlyArray<readonly [name: string, address: string]>
  /** Epoch seconds of the header Date. */
  readonly at: number
  readonly type: string
  readonly charset: string
  readonly text: string
  readonly isAscii: boolean
  readonly longestLine: number
  /** The mistakes that the parser finds in the message. */
  readonly defects: ReadonlyArray<string>
}

/** The domain of the mailboxes. */
export const domain = "example.org"

/** The local parts of the mailboxes. All others are unknown. */
export const boxes = ["pki", "second"] as const

/** The credentials of the sender. */
export const account = { username: "acme", password: "hunter22 with spaces" } as const

/** The server and its mailboxes. */
export interface Exim {
  /** The port with STARTTLS. */
  readonly port: number
  /** The port with TLS from the first octet. */
  readonly tlsPort: number
  /** The file of the certificate, which is self-signed and only for localhost. */
  readonly certificate: string
  /** All messages of a mailbox, in the order of their delivery. */
  readonly messages: (box: (typeof boxes)[number]) => Promise<ReadonlyArray<Message>>
  /** Waits until a mailbox has a matching message, because Exim delivers messages shortly after accepting them. */
  readonly awaitMessage: (box: (typeof boxes)[number], isMeant: (message: Message) => boolean) => Promise<Message>
  /** Waits until a mailbox has `count` messages, and returns all of them. */
  readonly awaitMessages: (box: (typeof boxes)[number], count: number) => Promise<ReadonlyArray<Message>>
  /** Empties the mailboxes. */
  readonly empty: () => void
  /** Stops listening. Delivered messages stay. */
  readonly leave: () => Promise<void>
  readonly comeBack: () => Promise<void>
  readonly dispose: () => Promise<void>
}

interface Place {
  readonly directory: string
  /** The folder of the unpacked packages. */
  readonly unpacked: string
  readonly owner: number
  readonly port: number
  readonly tlsPort: number
}

/** Returns a condition about a sign-in that set these variables. */
const isAccount = (user: string, password: string): string =>
  `\${if and{{eq{${user}}{${account.username}}}{eq{${password}}{${account.password}}}}}`

const programIn = (unpacked: string): string => join(unpacked, "usr/sbin/exim4")

const configuration = ({ directory, owner, port, tlsPort, unpacked }: Place): string => `
primary_hostname = mail.${domain}
exim_path = ${programIn(unpacked)}
exim_user = ${owner}
exim_group = ${owner}
deliver_drop_privilege = true
spool_directory = ${directory}/spool
log_file_path = ${directory}/log/%slog
pid_file_path = ${directory}/spool/exim.pid
keep_environment = LD_LIBRARY_PATH : LD_PRELOAD : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port} : ${tlsPort}
tls_on_connect_ports = ${tlsPort}
tls_advertise_hosts = *
tls_certificate = ${directory}/shown.pem
tls_privatekey = ${directory}/shown.key
auth_advertise_hosts = \${if eq{$tls_in_cipher}{}{}{*}}
host_lookup =
acl_smtp_rcpt = rcpt
acl_smtp_data = data

begin acl
rcpt:
  deny message = sign in first
       !authenticated = *
  deny message = this is no relay
       !domains = ${domain}
  require verify = recipient
  accept
data:
  require verify = header_syntax
  accept

begin routers
box:
  driver = accept
  domains = ${domain}
  local_parts = ${boxes.join(" : ")}
  transport = maildir

begin transports
maildir:
  driver = appendfile
  maildir_format
  directory = ${directory}/boxes/$local_part_data
  envelope_to_add
  return_path_add

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${isAccount("$auth2", "$auth3")}
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = Username:: : Password::
  server_condition = ${isAccount("$auth1", "$auth2")}
`

/** Returns the user as whom Exim runs, which is nobody if the caller is root, and otherwise the caller. */
const ownerOf = (uid: number | undefined): number => uid === undefined || uid === 0 ? 65_534 : uid

const prepare = async (place: Place): Promise<void> => {
  const { directory, owner, unpacked } = place
  const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", ...name]
  const [key, certificate] = [join(directory, "shown.key"), join(directory, "shown.pem")]
  await runCommand("openssl", [...made, "-keyout", key, "-out", certificate])
  const written = [["exim.conf", configuration(place)], [
    "passwd",
    `Debian-exim:x:${owner}:${owner}::/:/bin/sh\n`
  ]] as const
  for (const [file, text] of [...written, ["group", `Debian-exim:x:${owner}:\n`] as const]) {
    writeFileSync(join(directory, file), text)
  }
  const folders = ["spool", "log", "boxes"].map((one) => join(directory, one))
  for (const folder of folders) mkdirSync(folder)
  if (process.getuid?.() === 0) { for (const one of [key, ...folders]) chownSync(one, owner, owner) }
  // In the package, the program is setuid root.
  chmodSync(programIn(unpacked), 0o755)
}

const libraryFolder = (unpacked: string): string => {
  const all = join(unpacked, "usr/lib")
  return join(all, readdirSync(all).find((name) => name.includes("-linux-")) ?? "")
}

const listen = ({ directory, owner, unpacked }: Place): Promise<Foreground> => {
  const libraries = libraryFolder(unpacked)
  const exim = [programIn(unpacked), "-C", join(directory, "exim.conf"), "-bdf", "-v"]
  const variables = [
    `LD_LIBRARY_PATH=${libraries}`,
    `LD_PRELOAD=${join(libraries, "libnss_wrapper.so")}`,
    `NSS_WRAPPER_PASSWD=${join(directory, "passwd")}`,
    `NSS_WRAPPER_GROUP=${join(directory, "group")}`
  ]
  const given = process.getuid?.() === 0
    ? ["setpriv", `--reuid=${owner}`, `--regid=${owner}`, "--clear-groups", "env"]
    : ["env"]
  const [command = "env", ...words] = [...given, ...variables, ...exim]
  return startForeground(command, words, { cwd: directory, ready: /listening for SMTP/ })
}

/** Starts Exim from the folder of its unpacked packages. The caller removes the folder. */
export const startExim = async (unpacked: string): Promise<Exim> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-exim-"))
  chmodSync(directory, 0o755)
  try {
    const place = {
      directory,
      unpacked,
      owner: ownerOf(process.getuid?.()),
      port: await freePort(),
      tlsPort: await freePort()
    }
    await prepare(place)
    let running = await listen(place)
    const boxOf = (box: (typeof boxes)[number]) => join(directory, "boxes", box, "new")
    const messages: Exim["messages"] = async (box) =>
      existsSync(boxOf(box))
        ? JSON.parse(await runCommand("/usr/bin/python3", [join(import.meta.dirname, "read.py"), boxOf(box)]))
        : []
    const awaited = async <A>(
      box: (typeof boxes)[number],
      look: (all: ReadonlyArray<Message>) => A | undefined
    ): Promise<A> => {
      for (const end = Date.now() + patienceMs;;) {
        const all = await messages(box)
        const found = look(all)
        if (found !== undefined) return found
        if (Date.now() >= end) {
          throw new Error(
            `${box} has no such mail, but ${all.map(({ headers }) => headers["subject"]?.[0]).join("; ")}`
          )
        }
        await delay(100)
      }
    }
    return {
      port: place.port,
      tlsPort: place.tlsPort,
      certificate: join(directory, "shown.pem"),
      messages,
      awaitMessage: (box, isMeant) => awaited(box, (all) => all.find(isMeant)),
      awaitMessages: (box, count) => awaited(box, (all) => all.length < count ? undefined : all),
      empty: () => {
        for (const box of boxes) rmSync(join(directory, "boxes", box), { recursive: true, force: true })
      },
      leave: () => running.stop(),
      comeBack: async () => {
        running = await listen(place)
      },
      dispose: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  } catch (cause) {
    rmSync(directory, { recursive: true, force: true })
    throw cause
  }
}
