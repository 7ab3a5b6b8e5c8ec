import { readFileSync, writeFileSync } from "node:fs"
import { get as getHttp } from "node:http"
import { get as getHttps } from "node:https"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { verifyChain } from "../support/Openssl.ts"
import type { Workplace } from "./Client.ts"
import { runCommand } from "./Command.ts"

const patienceMs = 20_000

/** Reads a URL over HTTP, or over HTTPS with the certificates of a file. */
export const download = (url: string, trust: string): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(patienceMs)
    const request = url.startsWith("https:")
      ? getHttps(url, { ca: readFileSync(trust), signal })
      : getHttp(url, { signal })
    request.once("error", reject)
    request.once("response", (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.once("error", reject)
      response.once("end", () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks))
        else reject(new Error(`${url} answered ${response.statusCode}`))
      })
    })
  })

/** A revocation list, with its number and the path of its PEM file. */
export interface RevocationList {
  readonly number: bigint
  readonly file: string
}

/** Returns the list that the service publishes now. */
export const currentList = async (at: Workplace): Promise<RevocationList> => {
  const [der, file] = ["der", "pem"].map((form) => join(at.home, `crl.${form}`))
  if (der === undefined || file === undefined) throw new Error("no place for the list")
  writeFileSync(der, await download(new URL("crl", at.directoryUrl).href, at.trust))
  await runCommand("openssl", ["crl", "-inform", "DER", "-in", der, "-out", file])
  const said = await runCommand("openssl", ["crl", "-in", file, "-noout", "-crlnumber"])
  const [, digits] = /crlNumber=(0x[0-9A-F]+)/i.exec(said) ?? []
  if (digits === undefined) throw new Error(`the list has no number: ${said}`)
  return { number: BigInt(digits), file }
}

/** Waits for a list whose number is above `number`, and returns it. */
export const listAfter = async (at: Workplace, number: bigint): Promise<RevocationList> => {
  const end = performance.now() + patienceMs
  for (;;) {
    const list = await currentList(at)
    if (list.number > number) return list
    if (performance.now() > end) throw new Error(`no list after number ${number} in ${patienceMs} ms`)
    await wait(100)
  }
}

/** Fails unless OpenSSL refuses the leaf of a chain because this list names the leaf. */
export const verifyRevoked = async (pem: string, at: Workplace, host: string, list: RevocationList): Promise<void> => {
  const verdict = await verifyChain(pem, at.server.caFile, host, list.file).then(() => "it is good", String)
  if (!verdict.includes("certificate revoked")) throw new Error(`${host} should be revoked, but: ${verdict}`)
}
