# Replaces nixpkgs, so that the whole flake.nix can be evaluated without the network. Derivations are made but not
# built. Each derivation contains the hash of all its arguments.
{
  outputs =
    { self }:
    let
      lib = import ./lib.nix;
      packagesOf =
        system:
        let
          made =
            name: given: meta:
            derivation {
              inherit name system;
              builder = "/bin/sh";
              given = builtins.hashString "sha256" (builtins.toJSON given);
            }
            // {
              inherit meta;
            };
          tool = name: made name { } { mainProgram = name; };
          pkgs = {
            inherit lib;
            stdenv.hostPlatform.system = system;
            callPackage =
              file: more:
              let
                function = import file;
              in
              function (builtins.intersectAttrs (builtins.functionArgs function) pkgs // more);
            buildNpmPackage =
              { meta, ... }@given: made "${given.pname}-${given.version}" (removeAttrs given [ "meta" ]) meta;
            importNpmLock = {
              __functor = self: given: given;
              npmConfigHook = tool "npm-config-hook";
            };
            mkShell = { packages }: made "shell" { inherit packages; } { };
            testers.runNixOSTest =
              { name, nodes, testScript }:
              let
                machine = nodes.machine { inherit pkgs; };
                inherit (machine) environment services;
                modules = map (module: builtins.isFunction module) machine.imports;
              in
              made "vm-test-run-${name}" { inherit environment modules services testScript; } { };
            nodejs_24 = tool "node";
            python3 = tool "python3";
          }
          // lib.genAttrs [
            "certbot"
            "lego"
            "makeWrapper"
            "openssl"
            "postgresql"
            "sqlite"
            "uacme"
          ] tool;
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs [
        "x86_64-linux"
        "aarch64-linux"
      ] packagesOf;
    };
}
