//! What the programs have in common: how they are told what to do, and how an answer to a challenge is shown.

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

pub type Any = Box<dyn Error + Send + Sync>;

/// The address that each account begins with.
pub const CONTACT: &str = "mailto:ops@corp.example";

/// How long to wait before asking again how far the service is, and how often.
pub const INTERVAL: Duration = Duration::from_millis(200);
pub const ATTEMPTS: usize = 300;

/// `<home> <directory URL> <file of trusted roots> <step> [<argument> ...]`
pub struct Job {
    pub home: PathBuf,
    pub directory: String,
    pub trust: PathBuf,
    pub step: String,
    pub words: Vec<String>,
    /// Of the environment, for whoever opens an account with one: kid and HMAC key as they were printed.
    pub credential: Option<(String, String)>,
}

/// The words of a step that orders: `<challenge> <place> <name> [<name> ...]`. The place is a folder, a script or a port.
pub struct Wanted {
    pub challenge: String,
    pub place: String,
    pub names: Vec<String>,
}

impl Job {
    pub fn read() -> Result<Job, Any> {
        let mut words = env::args().skip(1);
        let mut next = || words.next().ok_or("a word is missing");
        let (home, directory, trust, step) = (next()?, next()?, next()?, next()?);
        Ok(Job {
            home: home.into(),
            directory,
            trust: trust.into(),
            step,
            words: words.collect(),
            credential: env::var("EAB_KID").ok().zip(env::var("EAB_HMAC_KEY").ok()),
        })
    }

    pub fn wanted(&self) -> Result<Wanted, Any> {
        let [challenge, place, names @ ..] = self.words.as_slice() else {
            return Err("a challenge and a place are missing".into());
        };
        Ok(Wanted { challenge: challenge.clone(), place: place.clone(), names: names.to_vec() })
    }

    /// The file of that kind of the certificate whose first name this is.
    pub fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.home.join(format!("{}.{kind}", name.replace('*', "_")))
    }

    /// A client of HTTP that trusts the roots of this job beside its own.
    pub fn http(&self) -> Result<reqwest::Client, Any> {
        let root = reqwest::Certificate::from_pem(&fs::read(&self.trust)?)?;
        Ok(reqwest::Client::builder().add_root_certificate(root).build()?)
    }
}

/// Puts a TXT record into the zone or takes it out, by the script of the zone.
pub fn record(script: &str, verb: &str, domain: &str, text: &str) -> Result<(), Any> {
    let status = Command::new(script).args([verb, &format!("_acme-challenge.{domain}"), text]).status()?;
    if status.success() { Ok(()) } else { Err(format!("{script} {verb} {domain} ended with {status}").into()) }
}

/// Leaves a certificate that the server of this machine shows for tls-alpn-01, with the digest of a key authorization.
pub fn alpn_certificate(folder: &str, name: &str, digest: &[u8]) -> Result<(), Any> {
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(vec![name.to_string()])?;
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let file = |kind: &str| Path::new(folder).join(format!("{name}.{kind}.pem"));
    fs::write(file("key"), key.serialize_pem())?;
    Ok(fs::write(file("crt"), parameters.self_signed(&key)?.pem())?)
}

/// Puts an http-01 answer where the web server of this machine finds it.
pub fn token(folder: &str, token: &str, text: &str) -> Result<(), Any> {
    Ok(fs::write(Path::new(folder).join(token), text)?)
}
