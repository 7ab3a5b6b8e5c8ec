# Runs one step of the README of acme-client:
# <home> <directory URL> <file of trusted roots> <step> [<argument> ...]
require "acme-client"
require "fileutils"

home, directory, roots, step, *words = ARGV

# Returns a key whose coordinates do not begin with a zero octet. One key in 128 has such a coordinate. This version of
# acme-client leaves the zero octet out of the JWK and the thumbprint, and the service refuses the key (RFC 7518 section
# 6.2.1.2).
def account_key
  loop do
    key = OpenSSL::PKey::EC.generate("prime256v1")
    point = key.public_key.to_bn.to_s(2)
    return key unless point[1] == "\0" || point[33] == "\0"
  end
end

key_file = File.join(home, "account.pem")
is_new = !File.exist?(key_file)
File.write(key_file, account_key.to_pem) if is_new

client = Acme::Client.new(
  private_key: OpenSSL::PKey.read(File.read(key_file)),
  directory: directory,
  connection_options: { ssl: { ca_file: roots } },
  bad_nonce_retry: 3
)
client.new_account(contact: "mailto:ops@corp.example", terms_of_service_agreed: true) if is_new

# Publishes the proof for a challenge: a file with the name of the token, or a record that the script adds to the zone.
show = lambda do |how, place, authorization|
  if how == "http-01"
    challenge = authorization.http
    File.write(File.join(place, challenge.token), challenge.file_content)
  else
    challenge = authorization.dns
    record = "#{challenge.record_name}.#{authorization.domain}"
    system(place, "add", record, challenge.record_content, exception: true)
  end
  challenge
end

case step
when "issue"
  how, place, *names = words
  order = client.new_order(identifiers: names)
  order.authorizations.each do |authorization|
    challenge = show.call(how, place, authorization)
    challenge.request_validation
    while %w[pending processing].include?(challenge.status)
      sleep(0.2)
      challenge.reload
    end
    abort("#{authorization.domain}: #{challenge.error}") unless challenge.status == "valid"
  end
  key = OpenSSL::PKey::RSA.new(2048)
  order.reload
  order.finalize(csr: Acme::Client::CertificateRequest.new(private_key: key, names: names))
  while order.status == "processing"
    sleep(0.2)
    order.reload
  end
  File.write(File.join(home, "#{names[0].sub("*", "_")}.pem"), order.certificate)
when "contact"
  account = client.account
  account.update(contact: "mailto:new@corp.example")
  abort("the contact is still #{account.contact}") unless account.contact == ["mailto:new@corp.example"]
when "revoke"
  certificate = OpenSSL::X509::Certificate.new(File.read(File.join(home, "#{words[0]}.pem")))
  client.revoke(certificate: certificate, reason: 4)
when "rollover"
  key = account_key
  client.account_key_change(new_private_key: key)
  File.write(key_file, key.to_pem)
when "deactivate"
  client.account_deactivate
else
  abort("there is no step #{step}")
end
