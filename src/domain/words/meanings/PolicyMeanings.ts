import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of policies, inventories and programs of the operator. */
export const policyMeanings = {
  filter_disabled: [
    "The policy of a profile refuses nobody.",
    "Write rules into `filter.rules`, unless everybody who reaches the service may order any name that they prove.",
    "configure/policy.md"
  ],
  filter_check_unused: [
    "A check is configured, and no rule names it.",
    "Name the check in a rule of `filter.rules`, or remove it.",
    "configure/policy.md"
  ],
  filter_request_blocked: [
    "A policy has refused a request because of its sender, before the request was read.",
    "If the client is to be admitted, try its address with `acme-svc filter explain --client-ip ADDRESS`.",
    "configure/policy.md"
  ],
  filter_denied: [
    "A policy has refused the names of an order or of a CSR.",
    "If they are to be allowed, try them with `acme-svc filter explain --identifier NAME`, and change the rule.",
    "configure/policy.md"
  ],
  filter_rule_warned: [
    "A rule that only warns would have decided this request.",
    "Nothing has to be done; change `mode` of the rule when it is to decide.",
    "configure/policy.md"
  ],
  filter_undecided: [
    "A policy could not decide, because a check has no answer, and the request has failed.",
    "Mend what the error names: the inventory, the name server or the program of the check.",
    "configure/policy.md"
  ],
  ipam_lookup_failed: [
    "The inventory gave no usable answer, so the check that needs it has no answer.",
    "Look at the error, which has the URL and the key to look at; `acme-svc config check --online` asks the inventory.",
    "configure/policy.md"
  ],
  ipam_tls_verification_disabled: [
    "The service does not verify the certificate of the inventory.",
    "Set `ipam.netbox.ca_cert_path` or `ipam.phpipam.ca_cert_path`, and turn `insecure_skip_verify` off.",
    "operate/hardening.md"
  ],
  script_not_executable: [
    "A program that the configuration names is missing, or the service may not run it.",
    "Put the program there, and give the user of the service the right to run it."
  ]
} as const satisfies SomeMeanings
