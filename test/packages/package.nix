# What nix/package.nix asks nixpkgs for, as JSON; lib is the few functions that it takes.
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
