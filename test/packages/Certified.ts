import type { Client } from "acme-client"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { acmeClient, issueByHttp01 } from "../support/AcmeClient.ts"
import type { World } from "../support/Ground.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"

/** A client with an account and a certificate of an installed service. */
export interface Certified {
  readonly client: Client
  readonly chain: string
  readonly serial: string
}

/** Gets a certificate from a service with npm's acme-client, and checks the certificate with `openssl verify`. */
export const certify = async (
  baseUrl: string,
  { responder }: Pick<World, "responder">,
  directory: string,
  name: string
): Promise<Certified> => {
  const client = await acmeClient(`${baseUrl}/profile/default/directory`)
  const { chain } = await issueByHttp01(client, responder, [name])
  const ca = join(directory, `${name}.ca.pem`)
  writeFileSync(ca, await (await fetch(`${baseUrl}/profile/default/ca.pem`)).text())
  await verifyChain(chain, ca, name)
  return { client, chain, serial: leafOf(chain).serialNumber }
}
