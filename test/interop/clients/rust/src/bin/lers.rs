//! What the examples of lers do (`lers/examples`), with its own server for http-01.

use acme_clients::{alpn_certificate, record, Any, Job, Wanted, ATTEMPTS, CONTACT, INTERVAL};
use lers::responses::RevocationReason;
use lers::solver::Http01Solver;
use lers::{Account, Certificate, Directory, DirectoryBuilder, Format, Solver};
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sha::sha256;
use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::time::Duration;

/// The zone's script in the place of a provider; what is shown is kept by the token, to be taken out again.
struct Zone {
    script: String,
    shown: Mutex<HashMap<String, (String, String)>>,
}

#[async_trait::async_trait]
impl Solver for Zone {
    async fn present(&self, domain: String, token: String, text: String) -> Result<(), Any> {
        record(&self.script, "add", &domain, &text)?;
        self.shown.lock().map_err(|_| "poisoned")?.insert(token, (domain, text));
        Ok(())
    }

    async fn cleanup(&self, token: &str) -> Result<(), Any> {
        let shown = self.shown.lock().map_err(|_| "poisoned")?.remove(token);
        let (domain, text) = shown.ok_or("nothing was shown")?;
        record(&self.script, "delete", &domain, &text)
    }

    fn attempts(&self) -> usize {
        ATTEMPTS
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }
}

/// Its own server for tls-alpn-01 ends the program: it hands over a key authorization where its digest is wanted.
struct Alpn {
    folder: String,
}

#[async_trait::async_trait]
impl Solver for Alpn {
    async fn present(&self, domain: String, _token: String, text: String) -> Result<(), Any> {
        alpn_certificate(&self.folder, &domain, &sha256(text.as_bytes()))
    }

    async fn cleanup(&self, _token: &str) -> Result<(), Any> {
        Ok(())
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }
}

fn directory(job: &Job) -> Result<DirectoryBuilder, Any> {
    Ok(Directory::builder(job.directory.clone()).client(job.http()?))
}

async fn account(job: &Job, directory: &Directory) -> Result<Account, Any> {
    let kept = job.home.join("account.pem");
    if kept.exists() {
        let key: PKey<Private> = PKey::private_key_from_pem(&fs::read(&kept)?)?;
        return Ok(directory.account().private_key(key).lookup().await?);
    }
    // With a P-256 key it leaves out the octet 0 that R or S of a signature begins with, once in 128: it is refused then.
    let key = PKey::from_rsa(Rsa::generate(2048)?)?;
    fs::write(&kept, key.private_key_to_pem_pkcs8()?)?;
    let mut builder = directory.account().contacts(vec![CONTACT.to_string()]).terms_of_service_agreed(true);
    if let Some((kid, hmac)) = &job.credential {
        builder = builder.external_account(kid, hmac);
    }
    Ok(builder.private_key(key).create_if_not_exists().await?)
}

/// Its server runs until the program ends.
async fn solving(job: &Job, wanted: &Wanted) -> Result<Directory, Any> {
    let builder = directory(job)?;
    let place = wanted.place.clone();
    let builder = match wanted.challenge.as_str() {
        "http-01" => {
            let solver = Http01Solver::new();
            std::mem::forget(solver.start(&format!("127.0.0.1:{place}").parse()?)?);
            builder.http01_solver(Box::new(solver))
        }
        "tls-alpn-01" => builder.tls_alpn01_solver(Box::new(Alpn { folder: place })),
        _ => builder.dns01_solver(Box::new(Zone { script: place, shown: Mutex::default() })),
    };
    Ok(builder.build().await?)
}

fn kept(job: &Job, name: &str) -> Result<Certificate, Any> {
    let (chain, key) = (fs::read(job.file(name, "pem"))?, fs::read(job.file(name, "key"))?);
    Ok(Certificate::from_chain_and_private_key(Format::Pem(&chain), Format::Pem(&key))?)
}

fn keep(job: &Job, name: &str, certificate: &Certificate) -> Result<(), Any> {
    fs::write(job.file(name, "pem"), certificate.fullchain_to_pem()?)?;
    Ok(fs::write(job.file(name, "key"), certificate.private_key_to_pem()?)?)
}

#[tokio::main]
async fn main() -> Result<(), Any> {
    let job = Job::read()?;
    match job.step.as_str() {
        "issue" => {
            let wanted = job.wanted()?;
            let directory = solving(&job, &wanted).await?;
            let account = account(&job, &directory).await?;
            let mut builder = account.certificate();
            for name in &wanted.names {
                builder = builder.add_domain(name);
            }
            keep(&job, &wanted.names[0], &builder.obtain().await?)
        }
        "renew" => {
            let wanted = job.wanted()?;
            let directory = solving(&job, &wanted).await?;
            let account = account(&job, &directory).await?;
            let certificate = account.renew_certificate(kept(&job, &wanted.names[0])?).await?;
            keep(&job, &wanted.names[0], &certificate)
        }
        "revoke" => {
            let directory = directory(&job)?.build().await?;
            let certificate = kept(&job, &job.words[0])?;
            let reason = RevocationReason::Superseded;
            let account = account(&job, &directory).await?;
            Ok(account.revoke_certificate_with_reason(certificate.x509(), reason).await?)
        }
        "revoke-by-its-key" => {
            let directory = directory(&job)?.build().await?;
            let certificate = kept(&job, &job.words[0])?;
            Ok(certificate.revoke_with_reason(&directory, RevocationReason::KeyCompromise).await?)
        }
        other => Err(format!("there is no step {other}").into()),
    }
}
