import java.io.FileInputStream;
import java.security.cert.CertPathValidator;
import java.security.cert.CertStore;
import java.security.cert.CertificateFactory;
import java.security.cert.CollectionCertStoreParameters;
import java.security.cert.PKIXParameters;
import java.security.cert.PKIXRevocationChecker;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** Verifies a chain, leaf first, with one trust anchor and with the revocation list of the leaf's issuer. */
public class VerifyPath {
  public static void main(String[] files) throws Exception {
    var factory = CertificateFactory.getInstance("X.509");
    var root = (X509Certificate) factory.generateCertificate(new FileInputStream(files[0]));
    List<X509Certificate> path = new ArrayList<>();
    for (var one : factory.generateCertificates(new FileInputStream(files[1]))) {
      if (!one.equals(root)) path.add((X509Certificate) one);
    }
    var lists = factory.generateCRLs(new FileInputStream(files[2]));
    var validator = CertPathValidator.getInstance("PKIX");
    var revocation = (PKIXRevocationChecker) validator.getRevocationChecker();
    revocation.setOptions(EnumSet.of(
      PKIXRevocationChecker.Option.ONLY_END_ENTITY,
      PKIXRevocationChecker.Option.PREFER_CRLS,
      PKIXRevocationChecker.Option.NO_FALLBACK
    ));
    var parameters = new PKIXParameters(Set.of(new TrustAnchor(root, null)));
    parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(lists)));
    parameters.addCertPathChecker(revocation);
    validator.validate(factory.generateCertPath(path), parameters);
    System.out.println("verified " + path.size());
  }
}
