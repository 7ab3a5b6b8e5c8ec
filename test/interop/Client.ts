import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Server } from "../support/Server.ts"
import type { NameServer } from "./NameServer.ts"

export type Challenge = "http-01" | "dns-01" | "tls-alpn-01"

/** The names of one certificate; the first one names the files. */
export type Names = readonly [string, ...ReadonlyArray<string>]

/** A credential of `acme-svc eab create`. */
export interface Credential {
  readonly kid: string
  readonly hmacKey: string
}

/** Where one client works: everything it needs to know and may write to. */
export interface Workplace {
  readonly server: Server
  /** The directory of the profile asked. */
  readonly directoryUrl: string
  /** A directory of the client's own, its home too. */
  readonly home: string
  readonly challenge: Challenge
  /** Where the service fetches http-01 answers. */
  readonly httpPort: number
  /** Where the service makes tls-alpn-01 handshakes. */
  readonly alpnPort: number
  /** The server of the zone, which the service asks too. */
  readonly nameServer: NameServer
  /** The certificate the service shows as a TLS server, to be trusted by the client. */
  readonly trust: string
  /** What the profile wants of whoever opens an account. */
  readonly credential?: Credential
}

/** A real ACME client: what it can do, and how it is told to. What is left out it cannot do. */
export interface Client {
  readonly name: string
  /** The programs it consists of. */
  readonly commands: ReadonlyArray<string>
  readonly challenges: ReadonlyArray<Challenge>
  /** What it is where it is not Debian's, and of which version. */
  readonly pinned?: { readonly package: string; readonly version: string }
  /** Why it cannot be had here, for want of something that is not installed for it; nothing where it can. */
  readonly lacks?: () => Promise<string | undefined>
  /** Takes away whatever else stands at the name of a dns-01 record. */
  readonly ownsRecords?: true
  /** Gets a certificate, and an account first where there is none. */
  readonly issue: (at: Workplace, names: Names) => Promise<unknown>
  /** Gets another certificate in the place of one that is not due yet. */
  readonly renew: (at: Workplace, names: Names) => Promise<unknown>
  /** Gets another certificate because renewal information says that it is time, and for no other reason. */
  readonly renewWhenTold?: (at: Workplace, names: Names) => Promise<unknown>
  /** The chain the client keeps for a name of an order, leaf first. */
  readonly chain: (at: Workplace, names: Names, name: string) => string
  /** It can open an account with the credential of its workplace. */
  readonly binds?: true
  /** Asks for a single name in the subject of its request alone. */
  readonly namesInSubject?: true
  /** Gives the account another address. */
  readonly updateContact?: (at: Workplace) => Promise<unknown>
  /** Gives the account another key. */
  readonly rollover?: (at: Workplace) => Promise<unknown>
  /** Revokes the certificate with the account's key. */
  readonly revoke?: (at: Workplace, names: Names) => Promise<unknown>
  /** Revokes the certificate with its own key. */
  readonly revokeByItsKey?: (at: Workplace, names: Names) => Promise<unknown>
  /** Ends the account at the service. */
  readonly deactivate?: (at: Workplace) => Promise<unknown>
}

/** Who gives each account's address. */
export const contact = "ops@corp.example"

/** Who gives it where that changes. */
export const newContact = "new@corp.example"

/** Writes a script for a client to call, and answers its path. */
export const scriptIn = (directory: string, name: string, ...lines: ReadonlyArray<string>): string => {
  const path = join(directory, name)
  writeFileSync(path, ["#!/bin/sh", ...lines, ""].join("\n"))
  chmodSync(path, 0o755)
  return path
}
