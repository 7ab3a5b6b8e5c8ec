import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.Security;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.shredzone.acme4j.Account;
import org.shredzone.acme4j.AccountBuilder;
import org.shredzone.acme4j.Authorization;
import org.shredzone.acme4j.Certificate;
import org.shredzone.acme4j.Login;
import org.shredzone.acme4j.Order;
import org.shredzone.acme4j.RevocationReason;
import org.shredzone.acme4j.Session;
import org.shredzone.acme4j.Status;
import org.shredzone.acme4j.challenge.Challenge;
import org.shredzone.acme4j.challenge.Dns01Challenge;
import org.shredzone.acme4j.challenge.Http01Challenge;
import org.shredzone.acme4j.challenge.TlsAlpn01Challenge;
import org.shredzone.acme4j.util.KeyPairUtils;

/**
 * Does what the example of acme4j does, and the rest of what its account can do.
 *
 * <p>{@code <home> <directory URL> <file of trusted roots> <step> [<argument> ...]}; a step that orders has the arguments
 * {@code <challenge> <place> <name> [<name> ...]}. The place is a folder, or the script of the zone.
 */
public final class Acme4jProgram {
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    private final Path home;
    private final Session session;
    private final List<String> words;

    private Acme4jProgram(Path home, String directory, List<String> words) {
        this.home = home;
        this.session = new Session(directory);
        this.words = words;
    }

    /** Makes this process trust the roots of a file. */
    private static void trust(Path roots) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (var in = Files.newInputStream(roots)) {
            for (var root : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("root" + store.size(), root);
            }
        }
        TrustManagerFactory trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trusted.getTrustManagers(), new SecureRandom());
        SSLContext.setDefault(context);
    }

    private Path file(String name, String kind) {
        return home.resolve(name.replace('*', '_') + "." + kind);
    }

    private static KeyPair read(Path file) throws IOException {
        try (var in = Files.newBufferedReader(file)) {
            return KeyPairUtils.readKeyPair(in);
        }
    }

    private static void write(Path file, KeyPair pair) throws IOException {
        try (var out = Files.newBufferedWriter(file)) {
            KeyPairUtils.writeKeyPair(pair, out);
        }
    }

    private Login login() throws Exception {
        Path key = home.resolve("account.key");
        Path location = home.resolve("account.url");
        if (Files.exists(location)) {
            return session.login(URI.create(Files.readString(location)).toURL(), read(key));
        }
        // The usual key of acme4j is P-384, whose signatures the service accepts only with `account.algorithms`.
        KeyPair pair = KeyPairUtils.createECKeyPair("secp256r1");
        AccountBuilder builder =
            new AccountBuilder().agreeToTermsOfService().addEmail("ops@corp.example").useKeyPair(pair);
        if (System.getenv("EAB_KID") != null) {
            builder.withKeyIdentifier(System.getenv("EAB_KID"), System.getenv("EAB_HMAC_KEY"));
        }
        Login login = builder.createLogin(session);
        write(key, pair);
        Files.writeString(location, login.getAccountLocation().toString());
        return login;
    }

    private static void run(String... command) throws Exception {
        int code = new ProcessBuilder(command).inheritIO().start().waitFor();
        if (code != 0) throw new IOException(String.join(" ", command) + " ended with " + code);
    }

    /** Leaves the answer to the challenge of an authorization where the service finds it. */
    private static Challenge answer(Authorization authorization, String type, String place) throws Exception {
        Challenge challenge = authorization.findChallenge(type).orElseThrow();
        if (challenge instanceof Http01Challenge http) {
            Files.writeString(Path.of(place, http.getToken()), http.getAuthorization());
        } else if (challenge instanceof Dns01Challenge dns) {
            String record = dns.getRRName(authorization.getIdentifier()).replaceAll("\\.$", "");
            run(place, "add", record, dns.getDigest());
        } else if (challenge instanceof TlsAlpn01Challenge alpn) {
            KeyPair pair = KeyPairUtils.createKeyPair(2048); // acme4j signs this certificate only with RSA
            String name = authorization.getIdentifier().getDomain();
            write(Path.of(place, name + ".key.pem"), pair);
            StringWriter text = new StringWriter();
            try (var out = new JcaPEMWriter(text)) {
                out.writeObject(alpn.createCertificate(pair, authorization.getIdentifier()));
            }
            Files.writeString(Path.of(place, name + ".crt.pem"), text.toString());
        }
        return challenge;
    }

    private void order(X509Certificate replaced) throws Exception {
        List<String> names = words.subList(2, words.size());
        var builder = login().newOrder().domains(names);
        if (replaced != null) builder.replaces(replaced);
        Order order = builder.create();
        for (Authorization authorization : order.getAuthorizations()) {
            if (authorization.getStatus() == Status.VALID) continue;
            answer(authorization, words.get(0), words.get(1)).trigger();
            Status status = authorization.waitForCompletion(PATIENCE);
            if (status != Status.VALID) throw new IOException(authorization.getIdentifier() + " is " + status);
        }
        if (order.waitUntilReady(PATIENCE) != Status.READY) throw new IOException("the order is " + order.getStatus());
        KeyPair pair = KeyPairUtils.createKeyPair();
        order.execute(pair);
        if (order.waitForCompletion(PATIENCE) != Status.VALID) throw new IOException("the order is " + order.getStatus());
        Certificate certificate = order.getCertificate();
        write(file(names.get(0), "key"), pair);
        Files.writeString(file(names.get(0), "url"), certificate.getLocation().toString());
        try (var out = Files.newBufferedWriter(file(names.get(0), "pem"))) {
            certificate.writeCertificate(out);
        }
    }

    private X509Certificate kept(String name) throws Exception {
        try (var in = Files.newInputStream(file(name, "pem"))) {
            return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(in);
        }
    }

    /** Orders when the service says that it is time, and not before. */
    private void renewWhenTold() throws Exception {
        String name = words.get(2);
        var told = login().bindCertificate(URI.create(Files.readString(file(name, "url"))).toURL()).getRenewalInfo();
        if (told.renewalIsNotRequired(Instant.now())) {
            throw new IOException("it is not time before " + told.getSuggestedWindowStart());
        }
        order(kept(name));
    }

    /** Reads every order of the account, as it is listed. */
    private void list() throws Exception {
        List<String> found = new ArrayList<>();
        var orders = login().getAccount().getOrders();
        while (orders.hasNext()) found.add(orders.next().getStatus().toString());
        System.out.println(String.join(" ", found));
    }

    private void rollover() throws Exception {
        KeyPair next = KeyPairUtils.createKeyPair(2048);
        login().getAccount().changeKey(next);
        write(home.resolve("account.key"), next);
    }

    private void changeContact() throws Exception {
        Account account = login().getAccount();
        var change = account.modify();
        change.getContacts().clear();
        change.addEmail("new@corp.example").commit();
    }

    private void step(String step) throws Exception {
        switch (step) {
            case "issue" -> order(null);
            case "renew-when-told" -> renewWhenTold();
            case "list" -> list();
            case "contact" -> changeContact();
            case "rollover" -> rollover();
            case "revoke" -> Certificate.revoke(login(), kept(words.get(0)), RevocationReason.SUPERSEDED);
            case "revoke-by-its-key" ->
                Certificate.revoke(session, read(file(words.get(0), "key")), kept(words.get(0)), null);
            case "deactivate" -> login().getAccount().deactivate();
            default -> throw new IllegalArgumentException("there is no step " + step);
        }
    }

    public static void main(String[] words) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        trust(Path.of(words[2]));
        List<String> rest = Arrays.asList(words).subList(4, words.length);
        new Acme4jProgram(Path.of(words[0]), words[1], rest).step(words[3]);
    }
}
