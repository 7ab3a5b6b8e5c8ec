import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of a process: its start and end, its configuration, its listeners and its profiles. */
export const processMeanings = {
  server_config_loaded: "The process has read its configuration from the file and from the environment.",
  server_config_file_absent: [
    "The configuration file that a variable names does not exist, so every key has its default, or the value of its environment variable.",
    "Write the file, or correct the variable `ACME_SVC_CONFIG`; `acme-svc config show` prints what is in force.",
    "reference/configuration.md"
  ],
  server_config_file_permissive: [
    "The configuration file contains a secret, but other users of this host can read the file.",
    "Remove the rights of other users with `chmod 0600`, and change the secret if others may have read it.",
    "operate/hardening.md"
  ],
  server_config_fault_ignored: [
    "A key has a fault, but its section is off or belongs to another role, so the key has its default.",
    "Correct the key before the section is turned on; `acme-svc config check` lists every such fault.",
    "reference/configuration.md"
  ],
  server_logging_key_unused: [
    "A key of the log has no effect, because another key that it needs is off.",
    "Remove the key, or set `logging.json_format` to true.",
    "reference/configuration.md"
  ],
  server_listening: "The listener for ACME clients accepts connections.",
  server_listener_stopped: "A reload has closed a listener that the new configuration does not have.",
  server_role_no_worker: [
    "This process runs no jobs, because it does not have the role worker.",
    "Check with `acme-svc worker list` whether another process has the role; without such a process no certificate is issued.",
    "operate/runbooks/no-worker.md"
  ],
  server_config_reloaded: "The process has read its configuration again, and serves the new one.",
  server_config_reload_refused: [
    "The new configuration has a fault, so the process continues with the old one.",
    "Correct what the record names, try it with `acme-svc config check`, and reload once more.",
    "operate/service.md"
  ],
  server_config_reload_failed: [
    "The host did not let the process serve the new configuration, so the process continues with the old one.",
    "Remove the cause that the record names, such as a port that is taken, and reload once more.",
    "operate/service.md"
  ],
  server_logging_filter_overridden: [
    "`logging.filter` has no effect, because `--log-level` or the variable `RUST_LOG` overrides it.",
    "If the key should decide, start the process without the flag and the variable.",
    "operate/monitor.md"
  ],
  server_reload_supervisor_gone: [
    "The process was told to reload while it was ending, so it did not reload.",
    "Do nothing: the next process reads the new configuration when it starts."
  ],
  server_socket_bind_failed: [
    "The listener for ACME clients cannot listen at its address.",
    "End the other program at that address, or change `server.bind_address`.",
    "operate/runbooks/process-gone.md"
  ],
  metrics_listening: "The listener for metrics accepts connections.",
  metrics_config_invalid: [
    "The listener for metrics has the address of another listener.",
    "Give `metrics.bind_address` a port of its own.",
    "reference/configuration.md"
  ],
  metrics_sample_failed: [
    "A gauge could not be read for a scrape, so the answer does not have it.",
    "Look at the error; if reads take too long, check whether the database is slow.",
    "reference/metrics.md"
  ],
  metrics_socket_bind_failed: [
    "The listener for metrics cannot listen at its address.",
    "End the other program at that address, or change `metrics.bind_address`.",
    "operate/runbooks/process-gone.md"
  ],
  publish_config_invalid: [
    "The listener that publishes lists has the address of another listener.",
    "Give `publish.bind_address` a port of its own.",
    "reference/configuration.md"
  ],
  publish_listening: "The listener that publishes lists and certificates accepts connections.",
  publish_socket_bind_failed: [
    "The listener that publishes lists cannot listen at its address.",
    "End the other program at that address, or change `publish.bind_address`.",
    "operate/runbooks/process-gone.md"
  ],
  server_fatal_error: [
    "The process ends, because it cannot start or cannot continue.",
    "Remove the cause that the record names; for a fault of the configuration run `acme-svc config check`.",
    "operate/runbooks/process-gone.md"
  ],
  server_loop_failed: [
    "A defect of this program has ended work in the background, and the work starts again.",
    "Report the record with its error to the authors of the service.",
    "operate/runbooks/server-errors.md"
  ],
  server_loop_given_up: [
    "Work in the background that the process needs has ended several times, so the process exits.",
    "Let the supervisor start the process again, and report the records `server_loop_failed` before this one.",
    "operate/runbooks/server-errors.md"
  ],
  server_log_gap: [
    "Some records could not be written to the log and are lost; this record says how many.",
    "Make room where the log is written, or repair the program that reads the log.",
    "operate/monitor.md"
  ],
  server_clock_skewed: [
    "The clock of this process and that of the database server, or of another process, differ by two seconds or more.",
    "Synchronise the clocks of both hosts; the dates in certificates come from the clock of the worker.",
    "operate/jobs.md"
  ],
  server_clock_stepped: [
    "The clock of this host was set while the process ran.",
    "Check the time service of the host; the process has moved due jobs to the new time by itself.",
    "operate/jobs.md"
  ],
  server_processes_supervised:
    "The parent process has read how many processes it runs, and how many connections they open.",
  server_processes_exceed_cores: [
    "There are more processes than cores; the additional processes make nothing faster.",
    "Lower `server.processes` to the number of cores.",
    "operate/sizing.md"
  ],
  server_process_started: "The parent has started a process.",
  server_process_ready: "A process that the parent has started serves now.",
  server_process_ended: [
    "A process has ended or could not be started, and the parent starts another one after the wait in the record.",
    "Look for `server_fatal_error` in the log of that process; if a signal ended it, find out in the log of the host who sent the signal; an `error` is why the system could not start it, such as EMFILE or EAGAIN at a limit of files or processes.",
    "operate/runbooks/process-gone.md"
  ],
  server_process_silent: [
    "A process was silent for more than a minute, did not answer a reload, did not finish its start during one, or did not end in time, so the parent has ended it by SIGKILL.",
    "Find out whether something had stopped the process, such as SIGSTOP or a debugger; if not, report it to the authors of the service.",
    "operate/sizing.md"
  ],
  server_process_unasked: [
    "A reload has succeeded while this process did not run, so nobody knows yet whether the process can serve the new configuration; its next start begins at once.",
    "Wait for `server_process_ready` of this process; if `server_process_ended` comes instead, correct what its `server_fatal_error` names, and reload once more.",
    "operate/service.md"
  ],
  server_shutdown_started: "The process has begun to end, and accepts no new connections.",
  server_shutdown_completed: "The process has answered its requests, has released its jobs, and ends.",
  profile_mounted: "A profile is served from now on.",
  profile_unmounted: [
    "A reload has removed a profile, so its URLs answer 404.",
    "If this was intended, do nothing; otherwise write the profile into the file again, and reload.",
    "configure/profiles.md"
  ],
  profile_degraded: [
    "This worker cannot sign for the profile; if no other worker can, new orders and finalize get 503.",
    "Remove the cause that the record names; the worker tries again by itself.",
    "operate/runbooks/issuance-fails.md"
  ],
  profile_recovered: "This worker can sign for the profile again.",
  profile_init_failed: [
    "The signer of a profile could not be made.",
    "Correct the keys or the files that the record names, and look at the signer with `acme-svc config check`.",
    "configure/signers.md"
  ],
  profile_kind_unoffered: [
    "The upstream of a relay does not offer a profile that a kind of certificate asks for.",
    "Correct `upstream` of that kind in `[certificates.kinds]`; orders of other kinds still work.",
    "configure/kinds.md"
  ],
  proxy_configured: "The service sends its requests to other hosts through a proxy.",
  tls_disabled: [
    "The listener for ACME clients speaks HTTP without TLS.",
    "Set `server.tls.enabled` to true, unless a proxy on this host terminates TLS.",
    "operate/hardening.md"
  ],
  tls_base_url_mismatch: [
    "The base URL begins with https, but the listener speaks HTTP without TLS, or the other way round.",
    "Correct the key that the record names, or add the proxy in front to `filter.trusted_proxies`.",
    "operate/monitor.md"
  ],
  tls_key_permissive: [
    "Other users of this host can read the key of a listener.",
    "Remove the rights of other users with `chmod 0600`, and replace the key and certificate if others may have read the key.",
    "operate/hardening.md"
  ],
  tls_pair_generated: "The service has made a certificate with its key for a listener.",
  tls_pair_renewal_announced: [
    "The service has made the next certificate of a listener, and serves it from the time in the record.",
    "Before that time, give the new file to the clients that trust the old certificate.",
    "operate/service.md"
  ],
  tls_pair_renewal_failed: [
    "The service could not make or write the next certificate of a listener, and serves the old one.",
    "Make the folder of the certificate writable for the service; the service tries again by itself.",
    "operate/runbooks/listener-certificate.md"
  ],
  tls_pair_renewed: "The service has replaced its own certificate of a listener.",
  tls_certificate_loaded: "A listener serves the certificate that the record names.",
  tls_certificate_expiring: [
    "The certificate of a listener expires soon. The service does not renew it, because the service has not made it.",
    "Replace the files of the key and the certificate, and reload the configuration.",
    "operate/runbooks/listener-certificate.md"
  ],
  tls_handshake_failed: [
    "A client has connected, but the TLS handshake has failed.",
    "If clients complain, look at the error: most often they do not trust the certificate, or do not speak TLS.",
    "clients/trust.md"
  ],
  tls_handshake_timeout: [
    "A client has connected, but did not finish the TLS handshake in time.",
    "If clients complain about a slow network, raise `server.tls.handshake_timeout_ms`.",
    "reference/configuration.md"
  ],
  trace_export_failed: [
    "The collector did not accept some spans, so they are lost; nothing else is lost.",
    "Check whether the collector at `tracing.endpoint` runs and answers.",
    "operate/monitor.md"
  ],
  trace_spans_dropped: [
    "There were more spans than the collector accepted, so some of them are lost.",
    "Make the collector faster, or lower `tracing.sample_percent`.",
    "operate/monitor.md"
  ],
  span_opened: "A request or a job has begun.",
  span_closed: "A request or a job has ended."
} as const satisfies SomeMeanings
