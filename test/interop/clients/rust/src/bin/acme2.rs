//! What the example of acme2 does (`acme2/examples/main.rs`), with the key of the account kept.

use acme2::openssl::pkey::PKey;
use acme2::{
    gen_ec_p256_private_key, gen_rsa_private_key, Account, AccountBuilder, AuthorizationStatus, Csr, DirectoryBuilder,
    OrderBuilder, OrderStatus,
};
use acme_clients::{record, token, Any, Job, ATTEMPTS, CONTACT, INTERVAL};
use std::fs;
use std::sync::Arc;

async fn account(job: &Job) -> Result<Arc<Account>, Any> {
    let directory = DirectoryBuilder::new(job.directory.clone()).http_client(job.http()?).build().await?;
    let kept = job.home.join("account.pem");
    let mut builder = AccountBuilder::new(directory);
    if kept.exists() {
        builder.private_key(PKey::private_key_from_pem(&fs::read(&kept)?)?).only_return_existing(true);
        return Ok(builder.build().await?);
    }
    // The library signs with RS256 alone.
    let key = gen_rsa_private_key(2048)?;
    fs::write(&kept, key.private_key_to_pem_pkcs8()?)?;
    builder.private_key(key).contact(vec![CONTACT.to_string()]).terms_of_service_agreed(true);
    Ok(builder.build().await?)
}

async fn issue(job: &Job) -> Result<(), Any> {
    let wanted = job.wanted()?;
    let mut builder = OrderBuilder::new(account(job).await?);
    for name in &wanted.names {
        builder.add_dns_identifier(name.clone());
    }
    let order = builder.build().await?;
    for authorization in order.authorizations().await? {
        let challenge = authorization.get_challenge(&wanted.challenge).ok_or("the challenge is not offered")?;
        let named = challenge.token.clone().ok_or("a challenge without a token")?;
        if wanted.challenge == "http-01" {
            token(&wanted.place, &named, &challenge.key_authorization()?.ok_or("no key authorization")?)?;
        } else {
            let text = challenge.key_authorization_encoded()?.ok_or("no key authorization")?;
            record(&wanted.place, "add", &authorization.identifier.value, &text)?;
        }
        let challenge = challenge.validate().await?.wait_done(INTERVAL, ATTEMPTS).await?;
        let authorization = authorization.wait_done(INTERVAL, ATTEMPTS).await?;
        if authorization.status != AuthorizationStatus::Valid {
            return Err(format!("{}: {:?}", authorization.identifier.value, challenge.error).into());
        }
    }
    let order = order.wait_ready(INTERVAL, ATTEMPTS).await?;
    let order = order.finalize(Csr::Automatic(gen_ec_p256_private_key()?)).await?.wait_done(INTERVAL, ATTEMPTS).await?;
    if order.status != OrderStatus::Valid {
        return Err(format!("the order is {:?}: {:?}", order.status, order.error).into());
    }
    let mut chain = Vec::new();
    for certificate in order.certificate().await?.ok_or("there is no certificate")? {
        chain.extend(certificate.to_pem()?);
    }
    Ok(fs::write(job.file(&wanted.names[0], "pem"), chain)?)
}

#[tokio::main]
async fn main() -> Result<(), Any> {
    let job = Job::read()?;
    match job.step.as_str() {
        "issue" => issue(&job).await,
        other => Err(format!("there is no step {other}").into()),
    }
}
