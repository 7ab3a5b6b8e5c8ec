# The unit that nix/module.nix makes of some options, as JSON; lib and pkgs are the few of nixpkgs that it asks for.
{ roles, address }:

let
  lib = rec {
    inherit (builtins) concatStringsSep elem filter;
    intersectLists = wanted: filter (one: elem one wanted);
    last = list: builtins.elemAt list (builtins.length list - 1);
    literalExpression = text: text;
    mkEnableOption = text: { };
    mkIf = condition: content: if condition then content else { };
    mkOption = option: option;
    optional = condition: one: optionals condition [ one ];
    optionals = condition: list: if condition then list else [ ];
    splitString = separator: text: filter builtins.isString (builtins.split separator text);
    toInt = builtins.fromJSON;
    getExe = package: "${package}/bin/acme-svc";
    getExe' = package: name: "${package}/bin/${name}";
    types = {
      bool = "bool";
      package = "package";
      path = "path";
      str = "str";
      enum = words: "enum";
      nonEmptyListOf = type: "nonEmptyListOf";
      nullOr = type: "nullOr";
      submodule = module: "submodule";
    };
  };
  pkgs = {
    coreutils = "/coreutils";
    stdenv.hostPlatform.system = "x86_64-linux";
    formats.toml = _: {
      type = "toml";
      generate = name: value: "/${name}";
    };
  };
  self.packages.x86_64-linux.default = "/acme-svc";
  config.services.acme-svc = {
    enable = true;
    package = "/acme-svc";
    settings.server.bind_address = address;
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
