# Returns as JSON the arguments that nix/package.nix passes to nixpkgs. lib contains only the functions that it uses.
import ../../nix/package.nix {
  lib = import ./nixpkgs/lib.nix;
  buildNpmPackage = arguments: arguments;
  importNpmLock = {
    __functor = self: arguments: arguments;
    npmConfigHook = "/npm-config-hook";
  };
  makeWrapper = "/make-wrapper";
  nodejs_24 = {
    outPath = "/nodejs";
    meta.mainProgram = "node";
  };
  python3 = "/python";
}
