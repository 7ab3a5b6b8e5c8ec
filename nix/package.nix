{
  lib,
  buildNpmPackage,
  makeWrapper,
  nodejs_24,
  python3,
}:

buildNpmPackage {
  pname = "acme-svc";
  version = (lib.importJSON ../package.json).version;

  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../package.json
      ../package-lock.json
      ../tsconfig.json
      ../packaging
      ../runtime
      ../src
      ../migrations
      ../panel
      ../config.toml.example
    ];
  };

  nodejs = nodejs_24;

  # The hash of everything package-lock.json names. The lock file in the repository leaves download addresses out, which
  # Nix needs: docs/development.md, "Nix", says how to write them down and how to get the hash that belongs here.
  npmDepsHash = lib.fakeHash;

  # The runtime among the packages wants a loader where other systems have it, and is first on the path of npm's scripts:
  # it goes, and nixpkgs' own runs everything. better-sqlite3 is built from source against its headers. Nothing else of
  # node_modules needs its install script to build the service.
  npmFlags = [ "--ignore-scripts" ];
  nativeBuildInputs = [
    makeWrapper
    python3
  ];
  preBuild = ''
    rm -rf node_modules/.bin/node node_modules/node-linux-*
    npm rebuild --ignore-scripts=false --build-from-source better-sqlite3
  '';

  installPhase = ''
    runHook preInstall
    npm prune --omit=dev --omit=optional --ignore-scripts
    mkdir -p $out/lib/acme-svc $out/bin
    cp -r dist migrations panel node_modules package.json config.toml.example $out/lib/acme-svc/
    makeWrapper ${lib.getExe nodejs_24} $out/bin/acme-svc \
      --add-flags "$out/lib/acme-svc/dist/main.js"
    runHook postInstall
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    runHook preInstallCheck
    cd $TMPDIR
    $out/bin/acme-svc --version
    $out/bin/acme-svc init
    runHook postInstallCheck
  '';

  meta = {
    description = "An ACME server that hands certificates to an organisation's own clients";
    license = lib.licenses.mit;
    mainProgram = "acme-svc";
    platforms = lib.platforms.linux;
  };
}
