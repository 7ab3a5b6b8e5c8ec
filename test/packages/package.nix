# What nix/package.nix asks nixpkgs for, as JSON; lib is the few functions that it takes.
let
  lib = rec {
    inherit (builtins) attrNames mapAttrs;
    importJSON = file: builtins.fromJSON (builtins.readFile file);
    last = list: builtins.elemAt list (builtins.length list - 1);
    optionalAttrs = condition: set: if condition then set else { };
    splitString = separator: text: builtins.filter builtins.isString (builtins.split separator text);
    getExe = package: "${package}/bin/node";
    fileset = {
      unions = files: files;
      toSource = { root, fileset }: map toString fileset;
    };
    licenses.mit = "MIT";
    platforms.linux = "linux";
  };
in
import ../../nix/package.nix {
  inherit lib;
  buildNpmPackage = arguments: arguments;
  importNpmLock = {
    __functor = self: arguments: arguments;
    npmConfigHook = "/npm-config-hook";
  };
  makeWrapper = "/make-wrapper";
  nodejs_24 = "/nodejs";
  python3 = "/python";
}
