import type { Client } from "./Client.ts"
import { acmeTiny } from "./clients/AcmeTiny.ts"
import { acmetool } from "./clients/Acmetool.ts"
import { apache } from "./clients/Apache.ts"
import { caddy, caddyOfPypi } from "./clients/Caddy.ts"
import { certbot, certbot1, certbot5 } from "./clients/Certbot.ts"
import { dehydrated } from "./clients/Dehydrated.ts"
import { autocert, certmagic } from "./clients/Go.ts"
import { acme4j } from "./clients/Java.ts"
import { lego } from "./clients/Lego.ts"
import { pythonAcme } from "./clients/PythonAcme.ts"
import { rootAcme } from "./clients/RootAcme.ts"
import { rubyAcmeClient } from "./clients/RubyAcmeClient.ts"
import { acme2, instantAcme, lers } from "./clients/Rust.ts"
import { step } from "./clients/Step.ts"
import { uacme } from "./clients/Uacme.ts"

/** The clients of the run, beginning with those that take the longest. */
export const clients: ReadonlyArray<Client> = [
  dehydrated,
  certbot,
  certbot5,
  certbot1,
  acme4j,
  lers,
  instantAcme,
  acme2,
  apache,
  certmagic,
  autocert,
  rubyAcmeClient,
  lego,
  step,
  uacme,
  pythonAcme,
  rootAcme,
  acmetool,
  acmeTiny,
  caddy,
  caddyOfPypi
]
