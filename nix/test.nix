self: {
  name = "acme-svc";

  nodes.machine =
    { pkgs, ... }:
    {
      imports = [ self.nixosModules.default ];
      environment.systemPackages = [
        pkgs.lego
        pkgs.openssl
      ];
      services.acme-svc = {
        enable = true;
        settings = {
          server.base_url = "http://localhost:3000";
          challenge.http_01.port = 5002;
          profiles.default.enabled = true;
        };
      };
    };

  testScript = ''
    machine.wait_for_unit("acme-svc.service")
    machine.wait_for_open_port(3000)
    machine.succeed(
        "lego --accept-tos --email you@example.org --path /tmp/lego "
        "--server http://localhost:3000/profile/default/directory "
        "--http --http.port :5002 --domains demo.localhost run"
    )
    machine.succeed(
        "openssl verify -CAfile /var/lib/acme-svc/ca.pem /tmp/lego/certificates/demo.localhost.crt"
    )
  '';
}
