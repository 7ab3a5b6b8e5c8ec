//! What the example of instant-acme does (`instant-acme/examples/provision.rs`), and the rest of what its account can do.

use acme_clients::{alpn_certificate, record, token, Any, Job, CONTACT};
use base64::prelude::{Engine, BASE64_URL_SAFE_NO_PAD};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType,
    ExternalAccountKey, Identifier, NewAccount, NewOrder, OrderStatus, RetryPolicy, RevocationReason, RevocationRequest,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::CertificateDer;
use std::fs;
use time::OffsetDateTime;

async fn account(job: &Job) -> Result<Account, Any> {
    let kept = job.home.join("account.json");
    let builder = Account::builder_with_root(&job.trust)?;
    if kept.exists() {
        let credentials: AccountCredentials = serde_json::from_slice(&fs::read(&kept)?)?;
        return Ok(builder.from_credentials(credentials).await?);
    }
    let external = match &job.credential {
        Some((kid, hmac)) => Some(ExternalAccountKey::new(kid.clone(), &BASE64_URL_SAFE_NO_PAD.decode(hmac)?)),
        None => None,
    };
    let wanted = NewAccount { contact: &[CONTACT], terms_of_service_agreed: true, only_return_existing: false };
    let (account, credentials) = builder.create(&wanted, job.directory.clone(), external.as_ref()).await?;
    fs::write(&kept, serde_json::to_vec(&credentials)?)?;
    Ok(account)
}

fn leaf(job: &Job, name: &str) -> Result<CertificateDer<'static>, Any> {
    Ok(CertificateDer::from_pem_file(job.file(name, "pem"))?)
}

async fn issue(job: &Job, replaced: Option<&CertificateDer<'_>>) -> Result<(), Any> {
    let wanted = job.wanted()?;
    let account = account(job).await?;
    let names: Vec<Identifier> = wanted.names.iter().cloned().map(Identifier::Dns).collect();
    let mut order = NewOrder::new(&names);
    if let Some(certificate) = replaced {
        order = order.replaces(CertificateIdentifier::try_from(certificate)?);
    }
    let mut order = account.new_order(&order).await?;
    let kind = match wanted.challenge.as_str() {
        "http-01" => ChallengeType::Http01,
        "dns-01" => ChallengeType::Dns01,
        _ => ChallengeType::TlsAlpn01,
    };
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let mut challenge = authorization.challenge(kind.clone()).ok_or("the challenge is not offered")?;
        let Identifier::Dns(name) = challenge.identifier().identifier.clone() else {
            return Err("an identifier of another type".into());
        };
        let text = challenge.key_authorization();
        match kind {
            ChallengeType::Http01 => token(&wanted.place, &challenge.token, text.as_str())?,
            ChallengeType::Dns01 => record(&wanted.place, "add", &name, &text.dns_value())?,
            _ => alpn_certificate(&wanted.place, &name, text.digest().as_ref())?,
        }
        challenge.set_ready().await?;
    }
    let status = order.poll_ready(&RetryPolicy::default()).await?;
    if status != OrderStatus::Ready {
        return Err(format!("the order is {status:?}: {:?}", order.state().error).into());
    }
    order.finalize().await?;
    let chain = order.poll_certificate(&RetryPolicy::default()).await?;
    Ok(fs::write(job.file(&wanted.names[0], "pem"), chain)?)
}

/// Orders when the service says that it is time, and not before.
async fn renew_when_told(job: &Job) -> Result<(), Any> {
    let certificate = leaf(job, &job.wanted()?.names[0])?;
    let (told, _) = account(job).await?.renewal_info(&CertificateIdentifier::try_from(&certificate)?).await?;
    if told.suggested_window.start > OffsetDateTime::now_utc() {
        return Err(format!("it is not time: {:?}", told.suggested_window).into());
    }
    issue(job, Some(&certificate)).await
}

#[tokio::main]
async fn main() -> Result<(), Any> {
    let job = Job::read()?;
    match job.step.as_str() {
        "issue" => issue(&job, None).await,
        "renew-when-told" => renew_when_told(&job).await,
        "contact" => Ok(account(&job).await?.update_contacts(&["mailto:new@corp.example"]).await?),
        "rollover" => {
            let credentials = account(&job).await?.update_key().await?;
            Ok(fs::write(job.home.join("account.json"), serde_json::to_vec(&credentials)?)?)
        }
        "revoke" => {
            let (certificate, reason) = (leaf(&job, &job.words[0])?, Some(RevocationReason::Superseded));
            Ok(account(&job).await?.revoke(&RevocationRequest { certificate: &certificate, reason }).await?)
        }
        "deactivate" => Ok(account(&job).await?.deactivate().await?),
        other => Err(format!("there is no step {other}").into()),
    }
}
