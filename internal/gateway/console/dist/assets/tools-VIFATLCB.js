/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-FFVYR4CV.js";import"./chunk-2BNIOAA5.js";import"./chunk-XGMSMR36.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
