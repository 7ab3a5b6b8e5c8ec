# Returns as JSON the unit that nix/module.nix makes from some options. lib and pkgs contain only what the module uses.
{
  roles,
  address,
  published ? null,
}:

let
  lib = import ./nixpkgs/lib.nix;
  service = {
    outPath = "/acme-svc";
    meta.mainProgram = "acme-svc";
  };
  pkgs = {
    coreutils = "/coreutils";
    stdenv.hostPlatform.system = "x86_64-linux";
    formats.toml = _: {
      type = "toml";
      generate = name: value: "/${name}";
    };
  };
  self.packages.x86_64-linux.default = service;
  config.services.acme-svc = {
    enable = true;
    package = service;
    settings = {
      server.bind_address = address;
    }
    // lib.optionalAttrs (published != null) {
      publish = {
        enabled = true;
        bind_address = published;
      };
    };
    environmentFile = null;
    openFirewall = true;
    inherit roles;
  };
  made = (import ../../nix/module.nix self { inherit config lib pkgs; }).config;
in
{
  inherit (made.systemd.services.acme-svc) environment serviceConfig;
  ports = made.networking.firewall.allowedTCPPorts;
}
