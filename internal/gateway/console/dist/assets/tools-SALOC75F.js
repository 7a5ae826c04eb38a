/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-RUJAADZM.js";import"./chunk-NQ4VEZ3U.js";import"./chunk-PASQL4IF.js";import"./chunk-4AUKJGMT.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
