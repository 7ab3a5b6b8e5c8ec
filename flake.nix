{
  description = "An ACME server that hands certificates to an organisation's own clients";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEachSystem = use: nixpkgs.lib.genAttrs systems (system: use nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEachSystem (pkgs: {
        default = pkgs.callPackage ./nix/package.nix { };
      });

      apps = forEachSystem (pkgs: {
        default = {
          type = "app";
          program = pkgs.lib.getExe self.packages.${pkgs.stdenv.hostPlatform.system}.default;
        };
      });

      # The runtime, both databases and some of the clients of `npm run interop`, which wants Debian's.
      devShells = forEachSystem (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.nodejs_24
            pkgs.python3
            pkgs.sqlite
            pkgs.postgresql
            pkgs.openssl
            pkgs.certbot
            pkgs.lego
            pkgs.uacme
          ];
        };
      });

      nixosModules.default = import ./nix/module.nix self;

      checks = forEachSystem (pkgs: {
        package = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
        module = pkgs.testers.runNixOSTest (import ./nix/test.nix self);
      });
    };
}
