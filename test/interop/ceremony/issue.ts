import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { AcmeSession } from "../../support/AcmeSession.ts"
import { startServer } from "../../support/Server.ts"

/*
 * Starts the service in a folder, and gets one certificate from it: the program that `Ceremony.ts` runs in a network of
 * its own. Writes the chain and the revocation list of its CA into the folder.
 */

const [directory = "", host = ""] = process.argv.slice(2)
const server = await startServer({ directory, config: null })
try {
  const session = await AcmeSession.open(server.directoryUrl)
  await session.register()
  const { chain } = await session.issue([host], new Map())
  session.close()
  const list = await fetch(`${server.baseUrl}/profile/default/crl`)
  writeFileSync(join(directory, "chain.pem"), chain)
  writeFileSync(join(directory, "list.der"), Buffer.from(await list.arrayBuffer()))
} finally {
  await server.stop()
}
