import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { promisify } from "node:util"

/* Watches the revocation lists that several processes serve, by reading them again and again as relying parties do. */

const run = promisify(execFile)

/** The source of a list, and how the list is read. `undefined` means that there is no list now. */
export interface ListSource {
  readonly name: string
  /** Whether new lists reach this source late, so that only {@link ListWatch.hasEverywhere} waits for them. */
  readonly isLate?: true
  readonly read: () => Promise<Buffer | undefined>
}

interface Seen {
  digest: string
  number: bigint
  serials: ReadonlySet<string>
  /** A file with the list, for openssl. */
  readonly file: string
}

/** The observations of the watch so far. */
export interface ListWatch {
  /** The mistakes that were found in lists, in words. */
  readonly wrong: ReadonlyArray<string>
  /** The number of different lists that were verified. */
  readonly verified: () => number
  /** The number of times that a source had no list. */
  readonly unanswered: () => number
  /**
   * Waits until every source that is not late has a list with this serial number, in lower case without leading zeros.
   * Fails if a list was wrong.
   */
  readonly has: (serial: string) => Promise<void>
  /**
   * Waits until every source has a list with these serial numbers, like {@link ListWatch.has}. The numbers are asked for
   * again and again, and may become fewer.
   */
  readonly hasEverywhere: (serials: () => ReadonlyArray<string>) => Promise<void>
  /** Whether a source has a list with this serial number. */
  readonly isListed: (serial: string) => boolean
  /** Fails unless OpenSSL refuses these certificates as revoked with the last list of each source. */
  readonly refuses: (certificates: ReadonlyArray<string>) => Promise<void>
  readonly stop: () => Promise<void>
}

const pauseMs = 100
/** How long a list may take to come, from the revocation to the file of a worker on a busy machine. */
const patienceMs = 180_000

/** Converts a serial number that OpenSSL prints to the form that the watch uses. */
export const plainSerial = (serial: string): string => serial.toLowerCase().replace(/^0+/, "")

/** Begins to read every source until {@link ListWatch.stop}. OpenSSL verifies each new list. */
export const watchLists = (sources: ReadonlyArray<ListSource>, caFile: string): ListWatch => {
  const directory = mkdtempSync(join(tmpdir(), "acme-lists-"))
  const wrong: Array<string> = []
  const last = new Map<string, Seen>()
  let [verified, unanswered] = [0, 0]
  const stopping = new AbortController()

  const judge = async (name: string, list: Buffer) => {
    const digest = createHash("sha256").update(list).digest("hex")
    const before = last.get(name)
    if (before?.digest === digest) return
    const file = join(directory, `${name.replaceAll(/\W/g, "_")}.pem`)
    writeFileSync(`${file}.read`, list)
    const form = list.includes("-----BEGIN") ? "PEM" : "DER"
    const words = ["crl", "-inform", form, "-in", `${file}.read`, "-verify", "-CAfile", caFile, "-text", "-out", file]
    const { stderr } = await run("openssl", words)
    if (!stderr.includes("verify OK")) wrong.push(`${name}: openssl says ${stderr}`)
    const { stdout } = await run("openssl", ["crl", "-in", file, "-noout", "-text", "-crlnumber"])
    const [, digits = "0"] = /crlNumber=(?:0x)?([0-9A-F]+)/i.exec(stdout) ?? []
    const number = BigInt(`0x${digits}`)
    const serials = new Set([...stdout.matchAll(/Serial Number: (\S+)/g)].map(([, one = ""]) => plainSerial(one)))
    if (before !== undefined) {
      if (number < before.number) wrong.push(`${name}: number ${number} after ${before.number}`)
      for (const serial of before.serials) {
        if (!serials.has(serial)) wrong.push(`${name}: number ${number} lacks ${serial}, which ${before.number} had`)
      }
    }
    verified++
    last.set(name, { digest, number, serials, file })
  }
  const watch = async ({ name, read }: ListSource) => {
    while (!stopping.signal.aborted) {
      const list = await read().catch(() => undefined)
      if (list === undefined) unanswered++
      else await judge(name, list).catch((error: unknown) => wrong.push(`${name}: ${String(error)}`))
      await delay(pauseMs)
    }
  }
  const watching = Promise.all(sources.map(watch))

  /** Waits until every one of these sources has every number. */
  const until = async (wanted: () => ReadonlyArray<string>, from: ReadonlyArray<ListSource>) => {
    const missing = () =>
      wanted().flatMap((serial) =>
        from.flatMap(({ name }) => last.get(name)?.serials.has(serial) === true ? [] : `${name} has no ${serial}`)
      )
    for (const end = Date.now() + patienceMs; missing().length > 0;) {
      if (wrong.length > 0) throw new Error(wrong.join("\n"))
      if (Date.now() > end) throw new Error(`no list came: ${missing().join(", ")}`)
      await delay(pauseMs)
    }
  }

  return {
    wrong,
    verified: () => verified,
    unanswered: () => unanswered,
    has: (serial) => until(() => [serial], sources.filter(({ isLate }) => isLate !== true)),
    hasEverywhere: (serials) => until(serials, sources),
    isListed: (serial) => [...last.values()].some(({ serials }) => serials.has(serial)),
    refuses: async (certificates) => {
      const files = certificates.map((pem, at) => {
        const file = join(directory, `revoked${at}.pem`)
        writeFileSync(file, pem)
        return file
      })
      for (const { name } of sources) {
        const file = last.get(name)?.file
        if (file === undefined) throw new Error(`${name} has served no list`)
        const words = ["verify", "-no-CApath", "-CAfile", caFile, "-crl_check", "-CRLfile", file, ...files]
        const said = await run("openssl", words).then(
          ({ stderr, stdout }) => stdout + stderr,
          ({ stderr, stdout }: { readonly stdout: string; readonly stderr: string }) => stdout + stderr
        )
        const refused = said.match(/certificate revoked/g)?.length ?? 0
        if (refused !== files.length) wrong.push(`${name}: openssl refuses ${refused} of ${files.length} revoked`)
      }
    },
    stop: async () => {
      stopping.abort()
      await watching
      rmSync(directory, { recursive: true, force: true })
    }
  }
}
