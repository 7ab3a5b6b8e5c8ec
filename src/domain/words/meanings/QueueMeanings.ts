import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of the queue: jobs, workers and the sweeps. */
export const queueMeanings = {
  job_enqueued: "A job was put into the queue.",
  job_kind_unknown: "Jobs of a kind that this version does not know wait for a process that knows the kind.",
  job_run_completed: "A job has succeeded.",
  job_run_retried: [
    "An attempt of a job has failed; the service tries again later.",
    "Look at the error; `acme-svc jobs show JOB_ID` says when the next attempt is, and `acme-svc jobs run-now JOB_ID` starts it now.",
    "operate/jobs.md"
  ],
  job_run_abandoned: [
    "The service has given up a job, because it failed too often or until it was too late, or because the failure is final.",
    "Remove the cause that the record names; `acme-svc jobs run-now JOB_ID` makes one more attempt.",
    "operate/runbooks/issuance-fails.md"
  ],
  job_run_panicked: [
    "A defect of this program has ended an attempt of a job.",
    "Report the record with its error to the authors of the service.",
    "operate/runbooks/server-errors.md"
  ],
  job_lease_lost: [
    "An attempt took longer than its lease, so another worker has the job, and the result was discarded.",
    "If this happens often, raise `jobs.lease_seconds`, or find out why the worker did not run for so long.",
    "operate/jobs.md"
  ],
  job_deadline_passed: [
    "A job was not finished before its deadline, such as the expiry of its order, so it is given up.",
    "Find out why earlier attempts failed, or with `acme-svc jobs queue` why no worker took the job.",
    "operate/jobs.md"
  ],
  job_runner_started: "The worker has begun to take jobs.",
  job_runner_retuned: "A reload has changed how the worker takes jobs.",
  job_runner_stopped: "The worker takes no more jobs, and has released those that it had not finished.",
  job_periodic_delayed: [
    "The worker could not put its periodic work into the queue; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  db_job_leases_reclaimed: [
    "Jobs of a worker that is gone were made ready again.",
    "Find out why the worker ended; `acme-svc worker list` shows the workers that are running.",
    "operate/runbooks/process-gone.md"
  ],
  db_job_times_corrected:
    "Jobs that were due too far in the future, after a clock was set, are due at the right time again.",
  worker_registered: "A process has entered itself into the list of processes.",
  worker_presence_failed: [
    "The process could not renew its entry in the list of processes; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  worker_presence_swept: "Entries of processes that are gone were deleted.",

  nonce_reaper_swept: "Nonces that can no longer be used were deleted.",
  nonce_reaper_failed: [
    "Old nonces could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  http_01_token_reaper_swept: "Expired tokens of relays were deleted.",
  http_01_token_reaper_failed: [
    "Expired tokens of relays could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  admin_session_reaper_swept: "Sessions and counts of sign-ins that have ended were deleted.",
  admin_session_reaper_failed: [
    "Ended sessions could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  order_reaper_swept: "Orders without a certificate that expired long ago were deleted.",
  order_reaper_failed: [
    "Expired orders could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  order_purge_completed: "An operator has deleted orders whose certificates expired long ago.",
  job_reaper_swept: "Jobs that ended long ago were deleted.",
  job_reaper_failed: [
    "Ended jobs could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ]
} as const satisfies SomeMeanings
