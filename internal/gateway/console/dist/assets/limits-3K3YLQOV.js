/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-6DQV5WEZ.js";import"./chunk-T77HCXNB.js";import"./chunk-XGMSMR36.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
