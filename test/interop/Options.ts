import { parseArgs } from "node:util"

/** The options of `npm run interop`. */
export interface Options {
  /** Parts of the names of what is run. Without parts, everything is run. */
  readonly parts: ReadonlyArray<string>
  /** Folders of checkouts of certbot's source, each of which is a client of its own. */
  readonly certbots: ReadonlyArray<string>
  /** Whether only the faults are played, with every fault at every upstream. Parts of names select the upstreams. */
  readonly upstreams: boolean
}

const usage = `Usage: npm run interop -- [options] [part of a name ...]

Without a part of a name, everything is played: the clients of Debian, nginx, HAProxy, Apache and Caddy before the service,
zone updates, relay, upstreams, mail, systemd, ml-dsa, kinds, credentials, ceremony, rotation, transit, trail, openapi,
and each recipe of docs/clients.

  --certbot DIR  play certbot as it is in this checkout of its source too, with Debian's Python packages; may be repeated
  --upstreams    play every fault of a relay's upstream, at every upstream there is to try, for about an hour; programs that
                 are not in the kept folder ($ACME_UPSTREAMS, or acme-svc/upstreams of the user's cache) are fetched first
  --help
`

/**
 * Reads the options, and fails with what is wrong. Returns undefined after printing the usage if that was requested.
 */
export const readOptions = (words: ReadonlyArray<string>): Options | undefined => {
  const { positionals, values } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      certbot: { type: "string", multiple: true, default: [] },
      upstreams: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  if (!values.help) return { parts: positionals, certbots: values.certbot, upstreams: values.upstreams }
  process.stdout.write(usage)
  return undefined
}
