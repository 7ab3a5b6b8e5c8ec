/**
 * Passwords of twelve or more characters that many people use, in lower case. They come from the frequency list of
 * zxcvbn (MIT licence), and from shorter passwords that people make longer. Runs of neighbouring keys are not in this
 * list, because a rule refuses them.
 */
export const commonPasswords: ReadonlySet<string> = new Set(
  `
  010203040506 012345678910 014702580369 01telemike01 050605rostik 098765432100 102030405060 1111111111zz 111222333000
  111222333444555 112233445566 122333444455555 123123qweqwe 123321123321 123321456654 123321qweewq 123456654321
  12345677654321 123456782000 1234567887654321 123456789000 12345678900987654321 123456789012 1234567890987654321
  1234567890abc 1234567890abcd 1234567890qaz 1234567890qw 1234567890qwe 1234567890qwerty 1234567890zzz 123456789101
  123456789123 1234567892000 12345678987654321 123456789987654321 123456789a123 123456789aaa 123456789abc
  123456789abcd 123456789asd 123456789qaz 123456789qqq 123456789qwe 123456789qwer 123456789qwerty 123456789zxc
  1234567qwertyu 123456qwerty 123456zxcvbn 12345qwert12345 1234qwer1234 1234qwerasdf 1234qwerasdf1 1234qwerasdfzxcv
  123ewqasdcxz 123qwe123qwe 123qwe456rty 123qweasdzxc 123qwerty123 12qw34er56ty 147258369000 147258369147 159357159357
  159753159753 159753456852 193570356033 19960610ilja 1a2a3a4a5a6a 1a2s3d4f5g6h 1q2w3e4r5t6y 1q2w3e4r5t6y7u8i
  1qa2ws3ed4rf 1qa2ws3ed4rf5tg 1qaz2wsx3edc 1qaz2wsx3edc4rfv 1qazxsw23edc 1qazxsw23edcvfr4 23176djivanfros
  23wkoa0fp78dk 31217221027711 32615948worms 41d8cd98f00b 420842084208555 4815162342lf 4815162342lost 541233432442
  59382113kevinp 6215mila6215 742617000027 89063032220m 89231243658s 89876065093rax 89semtsriuty 987654321000
  a123456789012 a12345678910 a1b2c3d4e5f6 a1s2d3f4g5h6 aa1234567890 abc123456789 abcd12345678 access123456
  admin1234567 admin12345678 admin18533362 adminadmin12 adminadminadmin administrator administrator1 administrator123
  aksjdlasdakj89879 alpha135792468 amadeusptfcor an83546921an13 andrew123456 andrewjackie antananarivu anytimetoday
  arsenal12345 asd123asd123 asdf12345678 asdfasdf1234 asdfgh123456 asdfghjkl123 asdfghjkl1234 ashley123456
  auckland2010 autumn2024!! autumn2025!! avrillavigne badiman28200 barcelona123 baseball1234 batman123456
  bhrh0h2oof6xbqjeh blacksonblon bltynbabrfwbz boy4u2ownnyc bpgjldsgjldthnf bullnuts2003 businessbabe changeme123!
  changeme1234 changemenow1 changemeplease charlie12345 cheeseburger chelsea12345 chesterfield chickenwing101
  christopher1 civilization cjdthitycndj cnfc35762209 combat123654 company12345 computer1234 configuratio construction
  contortionist corperfmonsy correcthorsebatterystaple cosmopolitan counterstrike daniel123456 december1234
  default12345 defaultpassword devilmaycry4 digitalprodu dkflbvbhjdbx dkflbvbhjdyf domainlock2005 dragon123456
  edwardcullen entertainment everything123 fatima753357 finalfantasy findaupair007 fkmnthyfnbdf fktrcfylhjdbx
  fktrcfylhjdf fktrcfylhjdyf flvbybcnhfnjh football1234 foreveryoung frederiksberg friday123456 fucktheworld
  fuckyoubitch fynfyfyfhbde gameofthrones gfhfktkjuhfv gfhjkmgfhjkm ghbdtnghbdtn ghbdtnrfrltkf ghhh47hj7649
  ghjatccbjyfk ghjcnjgbpltw ghjcnjgfhjkm ghjcnjghjcnj ghjcnjqgfhjkm ghjcnjrdfibyj ghjnbdjcnjzybt ghtdtlvtldtl
  gjkysqgbpltw godisgood123 greenlantern gthtrfnbgjkt gtnhjpfdjlcr harrypotter1 harrypotter123 hd764nw5d7e1vb1
  hd764nw5d7e1vbv hedimaptfcor hunter2hunter2 iampurehaha2 iamthebest123 idontknow123 iloveboobies ilovemyfamily
  iloveyou123! iloveyou1234 iloveyou12345 iloveyou3000 iloveyoubaby iloveyouforever iloveyoujesus ingodwetrust
  installdevic installsqlst intelligence international internet1234 ipo54tj45uy856 iseedeadpeople jamesbond007
  january12345 jennifer1234 jessica12345 jesuschrist1 jesuslovesme jordan123456 josephphone7 justinbieber ktjynsq40147
  leavemealone letmein!letmein! letmein12345 letmein123456 letmeinplease lhbjkjubz2957704 liverpool123 lordoftherings
  lost4815162342 love777321777 lytdybrbdfvgbhf lytghjgtnhjdcr mailcreated5240 manchester123 maprchem56458 marinamarina
  massimiliano master123456 masterbaiting masterbating masterpassword masturbation maurolarastefy maytheforcebewithyou
  mevefalkcakk michael12345 michaeljackson minecraft123 minnesota_hp momsanaladventure monday123456 monkey123456
  morganstanley mortalkombat motherfucker msoracle32re msorcloledbr mypassword123 nastyanastya ne_e_pod_chehyl
  necronomicon needforspeed nemvxyheqdd5oqxyxyzi networkingpe newpassword1 newpassword123 newproject2004 nhbujyjvtnhbz
  nhecsyfujkjdt nhfdvfnjkju123 nhfycajhvths nick1234-rem936 nightcrawler nondriversig nopasswordhere nothing12345
  ntktdbpjh1994 olcrackmaster onceuponatime ontheoutside opensesame123 p030710p$e4o p@ssw0rd123! p@ssw0rd1234
  p@ssword1234 paraklast1974 pass12345678 pass1234pass passpasspass passw0rd123! passw0rd1234 password123!
  password1234 password1234! password12345 password123456 passwordassword passwordpassword passwordstandard
  peanutbutter pfqwtd27121988 philadelphia playstation2 playstation3 pokemon12345 polniypizdec0211 polniypizdec1102
  polniypizdec110211 pornographic princess1234 professional ptybnxtvgbjy punksnotdead q1w2e3r4t5y6 q1w2e3r4t5y6u1
  q1w2e3r4t5y6u7 q1w2e3r4t5y6u7i8 q1w2e3r4t5y6u7i8o9p0 qawsedrftgyh qaz123wsx456 qazwsx123456 qazwsx123edc
  qazwsxedc123 qazwsxedcrfv qazwsxedcrfvtgb qazwsxqazwsx qazxswedc123 qazxswedcvfr qwaszxerdfcv qwe123qwe123
  qweasd123456 qweasdzxc123 qwerasdfzxcv qwertasdfgzxcvb qwerty123456 qwerty1234567 qwerty12345678 qwerty123456789
  qwertyasdfgh qwertyuiop10 qwertyuiop12 qwertyuiop123 qwertyuiop1234 qwertyuiop12345 qwertyuiop123456 qwertyytrewq
  realmadrid123 residentevil rfnthbyf1988 ronaldinho10 rootrootroot sanfrancisco satisfaction saun24865709
  scandinavian schoolgirlie sdicmt7seytn secretsecret security1234 seemnemaailm shadow123456 sojdlg123aljg
  something123 sonnenschein sonyericsson specialinsta spring2024!! spring2025!! startrek1234 starwars1234 stickdaddy77
  stinkyfinger stratocaster summer2024!! summer2025!! sunshine1234 superadmin123 superman1234 supernatural
  systemofadown temppassword temppassword1 test12345678 testpassword testpassword1 testtesttest thecakeisalie
  theempirestrikesback thisisapassword thisismypassword thomas123456 ticketmaster tobeornottobe toortoortoor
  topsecret123 transformers trustno1trustno1 unbelievable unknown12345 vanyarespekt vfhbyfvfhbyf vfrcbvvfrcbv
  vfvfvskfhfve vladimirovna warhammer40k wazzkaprivet websolutions websolutionssu webuivalidat weihnachtsbau
  weihnachtsbaum welcome1234! welcome12345 welcome123456 whatever1234 whosyourdaddy winter2024!! winter2025!!
  xxxp455w0rd5 z1x2c3v4b5n6 z1x2c3v4b5n6m7 zaq12wsx1234 zaq12wsxcde3 zaq1xsw2cde3 zaqwsxcderfv zcfvfzkexifz
  zqjphsyf6ctifgu zxcasdqwe123 zxcvbn123456 zxcvbnm12345 zxcvbnm123456 zxcvbnm123456789 zxcvbnmmnbvcxz
`.trim().split(/\s+/)
)
