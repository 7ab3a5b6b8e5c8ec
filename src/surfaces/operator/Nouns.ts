import type { Noun } from "./Act.ts"
import { accountActs } from "./acts/AccountActs.ts"
import { attentionActs } from "./acts/AttentionActs.ts"
import { auditActs } from "./acts/AuditActs.ts"
import { authorityActs } from "./acts/AuthorityActs.ts"
import { campaignActs } from "./acts/CampaignActs.ts"
import { certificateActs } from "./acts/CertificateActs.ts"
import { configurationActs } from "./acts/ConfigurationActs.ts"
import { credentialActs } from "./acts/CredentialActs.ts"
import { expiringActs } from "./acts/ExpiringActs.ts"
import { jobActs } from "./acts/JobActs.ts"
import { kindActs } from "./acts/KindActs.ts"
import { nonceActs } from "./acts/NonceActs.ts"
import { notificationActs } from "./acts/NotificationActs.ts"
import { operatorActs } from "./acts/OperatorActs.ts"
import { orderActs } from "./acts/OrderActs.ts"
import { orphanActs } from "./acts/OrphanActs.ts"
import { ownActs } from "./acts/OwnActs.ts"
import { profileActs } from "./acts/ProfileActs.ts"
import { healthActs, serviceActs } from "./acts/ServiceActs.ts"
import { sessionActs } from "./acts/SessionActs.ts"
import { tokenActs } from "./acts/TokenActs.ts"
import { upstreamOrderActs } from "./acts/UpstreamOrderActs.ts"

const all = [
  sessionActs,
  ownActs,
  accountActs,
  credentialActs,
  certificateActs,
  orderActs,
  expiringActs,
  orphanActs,
  upstreamOrderActs,
  auditActs,
  authorityActs,
  campaignActs,
  jobActs,
  notificationActs,
  nonceActs,
  profileActs,
  kindActs,
  configurationActs,
  attentionActs,
  serviceActs,
  healthActs,
  operatorActs,
  tokenActs
]

type ServicesOf<N> = N extends Noun<infer R> ? R : never

/** The services that the acts need. */
export type ActServices = ServicesOf<(typeof all)[number]>

/** All acts of operators, grouped by the kind of thing that they concern. */
export const nouns: ReadonlyArray<Noun<ActServices>> = all
