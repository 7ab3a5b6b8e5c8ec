/** The words of `signer.backend`: what signs the certificates of a profile (docs/configure/signers.md). */
export const signerBackends = ["local_ca", "relay", "custom"] as const
export type SignerBackend = (typeof signerBackends)[number]
