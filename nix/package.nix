{
  lib,
  buildNpmPackage,
  importNpmLock,
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
      ../tools/packaging
      ../tools/site
      ../docs
      ../deploy
      ../README.md
      ../CHANGELOG.md
      ../CONTRIBUTING.md
      ../SECURITY.md
      ../LICENSE
      ../src
      ../migrations
      ../panel
      ../config.toml.example
    ];
  };

  nodejs = nodejs_24;

  # Each package is fetched by the digest that package-lock.json has for it, so that there is no hash of them all.
  npmDeps = importNpmLock {
    package = removeAttrs (lib.importJSON ../package.json) [ "workspaces" ];
    packageLock = import ./lock.nix lib;
  };
  npmConfigHook = importNpmLock.npmConfigHook;

  # better-sqlite3 is built from source against the headers of nixpkgs' Node.js. Nothing else of node_modules needs its
  # install script to build the service.
  npmFlags = [ "--ignore-scripts" ];
  nativeBuildInputs = [
    makeWrapper
    python3
  ];
  preBuild = ''
    npm rebuild --ignore-scripts=false --build-from-source better-sqlite3
  '';

  installPhase = ''
    runHook preInstall
    # The binary of koffi is an optional package, which would be pruned.
    cp -r node_modules/@koromix koromix
    npm prune --omit=dev --omit=optional --ignore-scripts
    mkdir -p $out/lib/acme-svc $out/bin
    cp -r dist migrations panel node_modules config.toml.example $out/lib/acme-svc/
    cp -r koromix $out/lib/acme-svc/node_modules/@koromix
    # The one in use names what was fetched, which would have to stay with the service.
    cp .package.json.orig $out/lib/acme-svc/package.json
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
