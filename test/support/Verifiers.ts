import { spawnSync } from "node:child_process"
import { join } from "node:path"

/* Programs of others that verify a chain with one trust anchor and with a revocation list. */

/** The files of a chain: leaf first and up to the root, the root by itself, and the list of the leaf's issuer. */
export interface VerifiedChain {
  readonly chain: string
  readonly root: string
  readonly list: string
  /** The name of the server that the leaf must have. */
  readonly host: string
}

/** The program of {@link verifiers} that Java runs from its source. */
const program = join(import.meta.dirname, "../interop/ceremony/VerifyPath.java")

/** A command, and what it prints if it accepts the chain. */
export interface Verifier {
  readonly name: "OpenSSL" | "GnuTLS" | "Java"
  readonly command: "openssl" | "certtool" | "java"
  /** The program whose presence shows that the command works. Java runs a source only if its compiler is there. */
  readonly needs: "openssl" | "certtool" | "javac"
  readonly words: ReadonlyArray<string>
  readonly accepts: RegExp
}

/** Returns the commands that verify a chain strictly. */
export const verifiers = ({ chain, host, list, root }: VerifiedChain): ReadonlyArray<Verifier> => [
  {
    name: "OpenSSL",
    command: "openssl",
    needs: "openssl",
    words: [
      "verify",
      "-no-CApath",
      "-no-CAstore",
      "-x509_strict",
      "-check_ss_sig",
      "-purpose",
      "sslserver",
      "-verify_hostname",
      host,
      "-crl_check",
      "-CRLfile",
      list,
      "-CAfile",
      root,
      "-untrusted",
      chain,
      chain
    ],
    accepts: /: OK$/m
  },
  {
    name: "GnuTLS",
    command: "certtool",
    needs: "certtool",
    words: [
      "--verify",
      "--load-ca-certificate",
      root,
      "--load-crl",
      list,
      "--verify-hostname",
      host,
      "--infile",
      chain
    ],
    accepts: /^Chain verification output: Verified\. The certificate is trusted\./m
  },
  {
    name: "GnuTLS",
    command: "certtool",
    needs: "certtool",
    words: ["--verify-chain", "--infile", chain],
    accepts: /^Chain verification output: Verified\. The certificate is trusted\./m
  },
  { name: "Java", command: "java", needs: "javac", words: [program, root, chain, list], accepts: /^verified 2$/m }
]

/** Runs a verifier, and returns its output. */
export const outputOf = ({ command, words }: Verifier): string => {
  const { error, stderr, stdout } = spawnSync(command, words, { encoding: "utf8" })
  return `${error?.message ?? ""}${stdout}${stderr}`
}
