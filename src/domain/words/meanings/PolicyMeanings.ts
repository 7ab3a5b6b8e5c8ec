import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of policies, inventories and programs of the operator. */
export const policyMeanings = {
  filter_disabled: [
    "The policy of a profile refuses nobody.",
    "Write rules into `filter.rules`, unless everybody who can connect to the service may order any name whose control they prove.",
    "configure/policy.md"
  ],
  filter_check_unused: [
    "A check is configured, but no rule names it, so it has no effect.",
    "Name the check in a rule of `filter.rules`, or remove it.",
    "configure/policy.md"
  ],
  filter_request_blocked: [
    "A policy has refused a request because of its sender, before the request was read.",
    "To admit the client, see with `acme-svc filter explain --client-ip ADDRESS` which rule refuses it, and change this rule.",
    "configure/policy.md"
  ],
  filter_denied: [
    "A policy has refused the names of an order or of a CSR.",
    "To allow these names, see with `acme-svc filter explain --identifier NAME` which rule refuses them, and change this rule.",
    "configure/policy.md"
  ],
  filter_rule_warned: [
    "A rule whose `mode` is warn would have decided this request.",
    "Do nothing, or change `mode` of the rule if it should decide.",
    "configure/policy.md"
  ],
  filter_undecided: [
    "A policy could not decide, because a check has no answer, so the request has failed.",
    "Repair what the error names: the inventory, the name server or the program of the check.",
    "configure/policy.md"
  ],
  ipam_lookup_failed: [
    "The inventory gave no usable answer, so the check that needs it has no answer.",
    "Check the URL and the key that the error names; `acme-svc config check --online` asks the inventory.",
    "configure/policy.md"
  ],
  ipam_tls_verification_disabled: [
    "The service does not verify the certificate of the inventory.",
    "Set `ipam.netbox.ca_cert_path` or `ipam.phpipam.ca_cert_path`, and set `insecure_skip_verify` to false.",
    "operate/hardening.md"
  ],
  script_not_executable: [
    "A program that the configuration names is missing, or the service has no right to run it.",
    "Put the program at its path, and give the user of the service the right to run it."
  ]
} as const satisfies SomeMeanings
