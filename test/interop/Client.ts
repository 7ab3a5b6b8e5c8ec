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

/** The environment of a client: everything that it must know, and the places where it may write. */
export interface Workplace {
  readonly server: Server
  /** The directory of the profile that the client uses. */
  readonly directoryUrl: string
  /** A directory for only this client, which is also the client's home. */
  readonly home: string
  readonly challenge: Challenge
  /** Where the service fetches http-01 answers. */
  readonly httpPort: number
  /** Where the service makes tls-alpn-01 handshakes. */
  readonly alpnPort: number
  /** The server of the zone, to which the service also sends its queries. */
  readonly nameServer: NameServer
  /** The certificate that the service shows as a TLS server, which the client must trust. */
  readonly trust: string
  /** The credential that the profile requires of a client that opens an account. */
  readonly credential?: Credential
  /** The common name of the root to which the chain must lead, if the client chooses one. */
  readonly preferredChain?: string
  /** The kind of certificate that the client names in its orders, if it names one. */
  readonly kind?: string
}

/** A real ACME client, with its features and how each is used. Features that the client lacks are absent. */
export interface Client {
  readonly name: string
  /** The programs of the client. */
  readonly commands: ReadonlyArray<string>
  readonly challenges: ReadonlyArray<Challenge>
  /** The client's package and its version, if the client is not Debian's. */
  readonly pinned?: { readonly package: string; readonly version: string }
  /**
   * Returns nothing if the client is available, and otherwise the reason: something is missing that the run does not
   * install.
   */
  readonly lacks?: () => Promise<string | undefined>
  /** Whether the client fails if the answer to finalize does not wait for the certificate. */
  readonly needsWaits?: true
  /** Whether the client removes other records at the name of a dns-01 record. */
  readonly ownsRecords?: true
  /** Gets a certificate, and first an account if there is none. */
  readonly issue: (at: Workplace, names: Names) => Promise<unknown>
  /** Gets another certificate instead of one that is not due for renewal yet. */
  readonly renew: (at: Workplace, names: Names) => Promise<unknown>
  /** Gets another certificate only because renewal information says that it is time. */
  readonly renewWhenTold?: (at: Workplace, names: Names) => Promise<unknown>
  /** Returns the chain that the client keeps for a name of an order, leaf first. */
  readonly chain: (at: Workplace, names: Names, name: string) => string
  /** Whether the client can open an account with the credential of its workplace. */
  readonly binds?: true
  /** Whether the client requests a single name only in the subject of the CSR. */
  readonly namesInSubject?: true
  /** Gives the account another contact address. */
  readonly updateContact?: (at: Workplace) => Promise<unknown>
  /** Gives the account another key. */
  readonly rollover?: (at: Workplace) => Promise<unknown>
  /** Revokes the certificate with the account's key. */
  readonly revoke?: (at: Workplace, names: Names) => Promise<unknown>
  /** Revokes the certificate with its own key. */
  readonly revokeByItsKey?: (at: Workplace, names: Names) => Promise<unknown>
  /** Deactivates the account at the service. */
  readonly deactivate?: (at: Workplace) => Promise<unknown>
}

/** The contact address of each account. */
export const contact = "ops@corp.example"

/** The contact address after a change. */
export const newContact = "new@corp.example"

/** Writes a script for a client to call, and returns its path. */
export const scriptIn = (directory: string, name: string, ...lines: ReadonlyArray<string>): string => {
  const path = join(directory, name)
  writeFileSync(path, ["#!/bin/sh", ...lines, ""].join("\n"))
  chmodSync(path, 0o755)
  return path
}

/** Returns the variables with which a program gets the credential of its workplace. */
export const bindingOf = ({ credential }: Workplace): Readonly<Record<string, string>> =>
  credential === undefined ? {} : { EAB_KID: credential.kid, EAB_HMAC_KEY: credential.hmacKey }
