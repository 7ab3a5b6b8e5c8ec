/**
 * Addresses at which cloud providers give a machine its credentials and start-up data, except addresses in the
 * link-local ranges 169.254.0.0/16 and fe80::/10. These services answer every program on the machine.
 * docs/contribute/decisions/addresses.md, "Metadata services", lists the clouds and the sources.
 */
export const metadataServices: ReadonlyArray<string> = [
  "100.80.80.80/32",
  "100.96.0.96/32",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fd00:42::42/128",
  "fd00:100::100:200/128",
  "fd00:a9fe:a9fe::1/128",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:ec2::23/128",
  "fd00:ec2::254/128",
  "fd20:ce::254/128"
]
